// The rows of the rung of AVX2, FMA, F16C.
#define MH_RUNG avx2
#define MH_HIGHWAY HWY_AVX2
#include "multihead/kernels/cpu/isa/rows_rung.inl"
