// The rung of Arm NEON.
#define MH_RUNG neon
#define MH_HIGHWAY HWY_NEON
#include "multihead/kernels/cpu/isa/rung.inl"
