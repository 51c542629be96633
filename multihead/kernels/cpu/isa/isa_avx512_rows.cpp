// The rows of the rung of AVX-512 F, BW, CD, DQ, VL.
#define MH_RUNG avx512
#define MH_HIGHWAY HWY_AVX3
#include "multihead/kernels/cpu/isa/rows_rung.inl"
