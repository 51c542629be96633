// A golden file of PyTorch's: weights, inputs, outputs and gradients (tests/nn/golden/make_golden.py).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "multihead/autograd/tape.h"
#include "multihead/io/safetensors.h"
#include "multihead/nn/params.h"

namespace mh::test {

struct Golden {
  explicit Golden(const std::string& name)
      : file(read_safetensors(std::string(MH_TEST_DATA) + "/nn/golden/" + name + ".safetensors")) {}

  const Tensor& at(const std::string& name) const { return file.tensors.at(name); }
  bool has(const std::string& name) const { return file.tensors.count(name) != 0; }
  std::string argument(const std::string& name) const { return file.metadata.at(name); }
  int64_t number(const std::string& name) const { return std::stoll(argument(name)); }
  bool flag(const std::string& name) const { return argument(name) == "True"; }
  // The weights alone.
  std::shared_ptr<ParamStore> weights(const ParamStoreOptions& options = {}) const {
    NamedTensors out;
    for (const auto& [name, tensor] : file.tensors) {
      const bool other = name.starts_with("input.") || name.starts_with("gradient.") || name.starts_with("output_") ||
                         name == "output" || name == "logits" || name == "loss";
      if (!other || name == "output.weight") out[name] = tensor;
    }
    return std::make_shared<ParamStore>(out, options);
  }
  std::vector<int64_t> lengths(const std::string& name) const {
    const Tensor t = at(name);
    return {t.data<int64_t>(), t.data<int64_t>() + t.count()};
  }

  Safetensors file;
};

// The largest difference, against the largest element expected (or 1e-3 where all are smaller).
inline double error_against(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(to_string(got.shape()), to_string(expected.shape()));
  const Tensor a = got.detach().to(DType::f32).contiguous(), b = expected.detach().contiguous();
  double largest = 1e-3, off = 0;
  for (int64_t i = 0; i < b.count(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b.data<float>()[i])));
    const double difference =
        std::abs(static_cast<double>(a.data<float>()[i]) - static_cast<double>(b.data<float>()[i]));
    if (!(difference <= off)) off = difference;
  }
  return off / largest;
}

// Every parameter's gradient, and that all of the file's weights were used.
inline void expect_gradients(const Golden& golden, const ParamStore& store, const Gradients& gradients,
                             double tolerance = 1e-5) {
  EXPECT_TRUE(store.unused().empty());
  for (const auto& param : store.all())
    EXPECT_LT(error_against(gradients.of(param->value), golden.at("gradient." + param->name)), tolerance)
        << param->name;
}

}  // namespace mh::test
