// The rung of AVX2, FMA, F16C.
#define MH_RUNG avx2
#define MH_HIGHWAY HWY_AVX2
#include "multihead/kernels/cpu/isa/rung.inl"
