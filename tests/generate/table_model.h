// A Generator made of a table: a token's logits depend on the two before it (tests/generate/golden/make_golden.py).
#pragma once

#include <memory>
#include <vector>

#include "multihead/generate/generator.h"
#include "multihead/ops/rows/softmax.h"

namespace mh::test {

class TableModel : public Generator {
 public:
  static constexpr int64_t kVocabulary = 24;

  struct Pairs : State {
    void choose(const std::vector<int32_t>& parents, const std::vector<int64_t>&) override {
      std::vector<int32_t> chosen;
      for (const int32_t parent : parents) chosen.push_back(last[static_cast<size_t>(parent)]);
      last = std::move(chosen);
    }
    int64_t hypotheses() const override { return static_cast<int64_t>(last.size()); }
    std::vector<int32_t> last;  // of each hypothesis, the token before the one that is given next
  };

  static float logit(int32_t before, int32_t last, int32_t token) {
    uint32_t h = static_cast<uint32_t>(before) * 73856093U ^ static_cast<uint32_t>(last) * 19349663U ^
                 static_cast<uint32_t>(token) * 83492791U;
    h = (h ^ h >> 13) * 0x5BD1E995U;
    h ^= h >> 15;
    return static_cast<float>(h & 0xFFFFFFU) / 4194304;
  }

  Limits limits() const override { return {.vocabulary = kVocabulary, .fewest = 1, .most = 30, .end = -1}; }
  int64_t most_written(int64_t) const override { return 40; }
  int64_t room(const std::vector<int64_t>&, int64_t, int64_t) const override { return 0; }
  std::unique_ptr<State> begin(const Prompts& prompts, int64_t, Pass&) const override {
    auto state = std::make_unique<Pairs>();
    for (const auto& prompt : prompts) {
      state->first.push_back(prompt.back());
      state->last.push_back(prompt.size() > 1 ? prompt[prompt.size() - 2] : static_cast<int32_t>(kVocabulary));
    }
    return state;
  }
  Tensor step(State& state, const std::vector<int32_t>& ids, Pass&) const override {
    auto& pairs = static_cast<Pairs&>(state);
    const Tensor rows = zeros({static_cast<int64_t>(ids.size()), kVocabulary});
    for (size_t n = 0; n < ids.size(); ++n)
      for (int32_t v = 0; v < kVocabulary; ++v)
        rows.data<float>()[kVocabulary * static_cast<int64_t>(n) + v] = logit(pairs.last[n], ids[n], v);
    pairs.last = ids;
    return rows;
  }
  Tensor logits(const Tensor& rows) const override { return rows; }
  TopK top(const Tensor& rows, int64_t k) const override { return top_k(rows, k); }
};

}  // namespace mh::test
