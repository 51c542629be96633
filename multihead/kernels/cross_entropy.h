// The contract of the cross-entropy of rows of logits with a target class each, V classes.
//
//   nll  = lse - x[target]                        lse = log Σ exp(x)
//   loss = (1 - s) · nll + s · (lse - Σx / V)     s the label smoothing
//   dx   = (exp(x - lse) - (1 - s) · [c = target] - s / V) · scale
//
// A row whose target is `ignore` has loss, nll and dx exactly 0, whatever its logits hold.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

struct CrossEntropyForwardArgs {
  View x{};                          // (R, V), unit last stride, a float type
  const int32_t* targets = nullptr;  // (R), each in [0, V) or `ignore`
  int32_t ignore = -1;
  float smoothing = 0;
  float* lse = nullptr;  // (R), each
  float* loss = nullptr;
  float* nll = nullptr;
  View dx{};  // or null; else dx too, with a scale of 1, made while its row is near: as in CrossEntropyBackwardArgs
};

struct CrossEntropyBackwardArgs {
  View x{}, dx{};  // dx: x's type or bf16; may be x itself
  const int32_t* targets = nullptr;
  int32_t ignore = -1;
  float smoothing = 0;
  const float* lse = nullptr;
  float scale = 1;
};

}  // namespace mh::kernels
