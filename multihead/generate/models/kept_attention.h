// What a Transformer keeps between the steps of a search.
#pragma once

#include <utility>
#include <vector>

#include "multihead/generate/generator.h"
#include "multihead/nn/attention_state.h"

namespace mh::detail {

struct KeptAttention : Generator::State {
  explicit KeptAttention(AttentionState&& kept) : attention(std::move(kept)) {}
  void choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& counts) override {
    attention.choose(parents, counts);
  }
  int64_t hypotheses() const override { return attention.hypotheses(); }
  AttentionState attention;
};

inline AttentionState& attention_of(Generator::State& state) { return static_cast<KeptAttention&>(state).attention; }

// Prompts without their last tokens, which a first step is given.
struct BegunPrompts {
  Prompts read{};
  std::vector<int32_t> last{};
};
inline BegunPrompts begun(const Prompts& prompts) {
  BegunPrompts out;
  for (const auto& prompt : prompts) {
    check(!prompt.empty(), "begin: a prompt is empty; expected a token, or a model that begins with one");
    out.read.emplace_back(prompt.begin(), prompt.end() - 1);
    out.last.push_back(prompt.back());
  }
  return out;
}

}  // namespace mh::detail
