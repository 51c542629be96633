// A tiny folder that transformers wrote, with its inputs and outputs (tests/models/golden/make_families.py).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/io/safetensors.h"
#include "multihead/models/pretrained/pretrained.h"

namespace mh::test {

// The largest difference, against the largest element expected (or 1e-3 where all are smaller).
inline double error_of(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(to_string(got.shape()), to_string(expected.shape()));
  if (!(got.shape() == expected.shape())) return INFINITY;
  const Tensor a = got.detach().to(DType::f32).contiguous(), b = expected.to(DType::f32).contiguous();
  double largest = 1e-3, off = 0;
  for (int64_t i = 0; i < b.count(); ++i) {
    const double x = a.data<float>()[i], y = b.data<float>()[i];
    largest = std::max(largest, std::abs(y));
    if (!(std::abs(x - y) <= off)) off = std::abs(x - y);
  }
  return off / largest;
}

struct GoldenFolder {
  explicit GoldenFolder(const std::string& name)
      : path(std::string(MH_TEST_DATA) + "/models/golden/families/" + name),
        golden(read_safetensors(path + "/golden.safetensors")) {}

  static std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& each : std::filesystem::directory_iterator(std::string(MH_TEST_DATA) + "/models/golden/families"))
      out.push_back(each.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

  Tensor input(const std::string& name) const {
    const auto at = golden.tensors.find("input." + name);
    return at == golden.tensors.end() ? Tensor() : at->second;
  }
  TokenBatch tokens(const std::string& ids, const std::string& lengths) const {
    if (!input(ids)) return {};
    const Tensor counts = input(lengths);
    return {input(ids), Sequences::of_lengths({counts.data<int32_t>(), counts.data<int32_t>() + counts.count()})};
  }
  ModelInputs inputs(bool layers = true) const {
    return {.tokens = tokens("ids", "lengths"),
            .types = input("types"),
            .decoder = tokens("decoder_ids", "decoder_lengths"),
            .pixels = input("pixels"),
            .hidden_states = layers,
            .attentions = layers};
  }

  // What the model gave under one of Hugging Face's names, "hidden_states.2" for one of a list.
  static Tensor named(const ModelOutputs& outputs, const std::string& name) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) {
      const auto at = outputs.tensors.find(name);
      return at == outputs.tensors.end() ? Tensor() : at->second;
    }
    const auto list = outputs.layers.find(name.substr(0, dot));
    const size_t n = std::stoul(name.substr(dot + 1));
    return list == outputs.layers.end() || n >= list->second.size() ? Tensor() : list->second[n];
  }
  // The largest error over all outputs of the file.
  double error(const ModelOutputs& outputs) const {
    double worst = 0;
    for (const auto& [name, expected] : golden.tensors) {
      if (!name.starts_with("output.")) continue;
      Tensor got = named(outputs, name.substr(7));
      EXPECT_TRUE(got) << path << ": " << name;
      if (!got) return INFINITY;
      if (got.count() == expected.count() && name == "output.logits") got = got.reshape(expected.shape());
      const double off = error_of(got, expected);
      EXPECT_LT(off, 2e-5) << path << ": " << name;
      worst = std::max(worst, off);
    }
    return worst;
  }

  std::string path;
  Safetensors golden;
};

}  // namespace mh::test
