// Where gradients gather: one sum per traced tensor.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "multihead/tensor/tensor.h"

namespace mh {

// Gradients by trace. What is added under one trace is summed in the order it came.
class Gradients {
 public:
  // The gradient of x, or an empty tensor where none came.
  Tensor find(const Tensor& x) const;
  // Throws: invalid_argument where none came.
  Tensor of(const Tensor& x) const;

  // Adds g to what is held under `trace`. A g that nobody else holds may be kept and added to in place.
  void add(uint64_t trace, Tensor g);
  // Takes out what is held under `trace`; empty where nothing is.
  Tensor take(uint64_t trace);
  // The same where it is f32 and may be added to where it lies: dense, and nobody else holds it. Otherwise it stays.
  Tensor take_to_grow(uint64_t trace);
  void clear() { held_.clear(); }
  size_t size() const { return held_.size(); }

 private:
  std::unordered_map<uint64_t, Tensor> held_;
};

}  // namespace mh
