// The configurations of the Hopper kernels: one translation unit each. Chosen on an H200; plan.h picks one per call.
#pragma once

#include "multihead/kernels/cuda/call.h"

namespace mh::kernels::cuda {

// masked: behind, ahead or a prefix cut tiles. turns: warpgroups issue in turn. fixed: the reference stays (forward.h).
struct ForwardEntry {
  Element type;
  int D, groups, BN, stages;
  bool masked, turns, fixed;
  int per_sm = 1;        // blocks on a multiprocessor at a time
  bool options = false;  // takes what changes scores pair by pair (options.h)
};
inline constexpr ForwardEntry kForwardShapes[] = {
    {Element::bf16, 128, 2, 128, 2, false, true, true},
    {Element::bf16, 128, 2, 128, 2, true, true, true},
    {Element::bf16, 64, 4, 64, 4, false, false, true},
    {Element::bf16, 64, 3, 128, 2, false, true, true},
    {Element::bf16, 64, 2, 128, 2, true, true, true},
    {Element::bf16, 64, 3, 128, 2, true, true, true},
    {Element::f16, 128, 2, 128, 2, false, true, false},
    {Element::f16, 128, 2, 128, 2, true, true, false},
    {Element::f16, 64, 2, 128, 2, false, true, false},
    {Element::f16, 64, 2, 128, 2, true, true, false},
    {Element::bf16, 64, 1, 64, 3, true, false, true, 3},
    {Element::bf16, 64, 2, 64, 4, true, true, false, 1, true},
    {Element::bf16, 128, 2, 64, 3, true, true, false, 1, true},
    {Element::bf16, 192, 2, 64, 2, true, true, false, 1, true},
    {Element::bf16, 256, 1, 64, 2, true, false, false, 1, true},
    {Element::f16, 64, 2, 64, 4, true, true, false, 1, true},
    {Element::f16, 128, 2, 64, 3, true, true, false, 1, true},
    {Element::f16, 192, 2, 64, 2, true, true, false, 1, true},
    {Element::f16, 256, 1, 64, 2, true, false, false, 1, true},
};

struct DqEntry {
  Element type;
  int D, groups, BN, k_stages, v_stages;
  bool masked;
};
inline constexpr DqEntry kDqShapes[] = {
    {Element::bf16, 128, 2, 64, 4, 3, false}, {Element::bf16, 128, 2, 80, 3, 3, false},
    {Element::bf16, 128, 2, 64, 4, 3, true},  {Element::bf16, 64, 2, 128, 3, 2, false},
    {Element::bf16, 64, 3, 64, 4, 3, false},  {Element::bf16, 64, 2, 128, 3, 2, true},
    {Element::f16, 128, 2, 64, 4, 3, false},  {Element::f16, 128, 2, 64, 4, 3, true},
    {Element::f16, 64, 2, 128, 3, 2, false},  {Element::f16, 64, 2, 128, 3, 2, true},
    {Element::bf16, 128, 2, 80, 3, 3, true},
};

// k_steps, v_steps: 16-wide steps of K and V kept in registers.
struct DkvEntry {
  Element type;
  int D, BM, stages, k_steps, v_steps;
  bool masked;
};
inline constexpr DkvEntry kDkvShapes[] = {
    {Element::bf16, 128, 64, 4, 4, 0, false}, {Element::bf16, 128, 112, 2, 0, 0, false},
    {Element::bf16, 128, 64, 4, 4, 0, true},  {Element::bf16, 128, 112, 2, 0, 0, true},
    {Element::bf16, 64, 128, 3, 4, 4, false}, {Element::bf16, 64, 128, 3, 4, 4, true},
    {Element::f16, 128, 64, 4, 4, 0, false},  {Element::f16, 128, 64, 4, 4, 0, true},
    {Element::f16, 64, 128, 3, 4, 4, false},  {Element::f16, 64, 128, 3, 4, 4, true},
};

template <class Entry, int N>
constexpr int count_of(const Entry (&)[N]) {
  return N;
}
inline constexpr int kForwardCount = count_of(kForwardShapes), kDqCount = count_of(kDqShapes),
                     kDkvCount = count_of(kDkvShapes);

}  // namespace mh::kernels::cuda
