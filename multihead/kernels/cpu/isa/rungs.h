// Functions of the rungs: each refines the table of the rung below it; refine_rows does so for what works on rows,
// probe for the loops that measure the rung. Only dispatch.cpp calls them.
#pragma once

#include "multihead/kernels/limits.h"
#include "multihead/kernels/table.h"

namespace mh::kernels {

namespace baseline {
Table refine(Table below);
Table refine_rows(Table below);
Probes probe(Probes below);
}  // namespace baseline
namespace avx2 {
Table refine(Table below);
Table refine_rows(Table below);
Probes probe(Probes below);
}  // namespace avx2
namespace avx512 {
Table refine(Table below);
Table refine_rows(Table below);
Probes probe(Probes below);
}  // namespace avx512
namespace avx512_bf16 {
Table refine(Table below);
Table refine_rows(Table below);
Probes probe(Probes below);
}  // namespace avx512_bf16
namespace amx {
Table refine(Table below);
Probes probe(Probes below);
}  // namespace amx
namespace twin {
Table refine(Table below);
}
namespace neon {
Table refine(Table below);
Table refine_rows(Table below);
Probes probe(Probes below);
}  // namespace neon

}  // namespace mh::kernels
