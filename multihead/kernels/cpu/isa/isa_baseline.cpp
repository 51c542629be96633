// The rung of SSE4.2.
#define MH_RUNG baseline
#define MH_HIGHWAY HWY_SSE4
#include "multihead/kernels/cpu/isa/rung.inl"
