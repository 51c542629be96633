// How prompts are handed to a recurrent model.
#include "multihead/generate/models/recurrent_generator.h"

namespace mh {

namespace {

struct KeptHypotheses : Generator::State {
  explicit KeptHypotheses(RecurrentHypotheses&& given) : kept(std::move(given)) {}
  void choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& counts) override {
    kept.choose(parents, counts);
  }
  int64_t hypotheses() const override { return kept.count(); }
  RecurrentHypotheses kept;
};

}  // namespace

Generator::Limits RecurrentGenerator::limits() const {
  const RecurrentConfig& c = model_.config();
  return {.vocabulary = c.vocabulary, .most = c.max_length - 1, .end = c.end, .prompt_bounds_length = true};
}

std::unique_ptr<Generator::State> RecurrentGenerator::begin(const Prompts& prompts, int64_t, Pass& pass) const {
  Prompts ended = prompts;
  for (auto& source : ended) source.push_back(model_.config().end);
  auto state = std::make_unique<KeptHypotheses>(model_.begin(model_.encode(token_batch(ended), pass)));
  state->first.assign(prompts.size(), model_.config().begin);
  return state;
}

Tensor RecurrentGenerator::step(State& state, const std::vector<int32_t>& ids, Pass& pass) const {
  return model_.step_rows(static_cast<KeptHypotheses&>(state).kept, ids, pass);
}

}  // namespace mh
