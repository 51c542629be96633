// What the tests of tensors share: known numbers, and the sentence of a refusal.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

// 0, 1, 2, … in the shape.
inline Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.count()));
  std::iota(values.begin(), values.end(), 0.0f);
  return tensor(values, shape);
}

template <class Body>
std::string refusal(Body body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "no refusal";
}

}  // namespace mh
