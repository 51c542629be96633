// How prompts are handed to the two kinds of model.
#include "multihead/generate/models/model_generators.h"

#include "multihead/generate/models/kept_attention.h"

namespace mh {

using detail::attention_of;
using detail::KeptAttention;

Generator::Limits TransformerGenerator::limits() const {
  const TransformerConfig& c = model_.config();
  return {.vocabulary = c.vocabulary, .most = c.max_length - 1, .end = c.end, .prompt_bounds_length = true};
}

int64_t TransformerGenerator::room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) const {
  return AttentionState::room(static_cast<int64_t>(prompts.size()), width, longest);
}

std::unique_ptr<Generator::State> TransformerGenerator::begin(const Prompts& prompts, int64_t room, Pass& pass) const {
  Prompts ended = prompts;
  for (auto& source : ended) source.push_back(model_.config().end);
  auto state = std::make_unique<KeptAttention>(model_.begin(model_.encode(token_batch(ended), pass), room, pass));
  state->first.assign(prompts.size(), model_.config().begin);
  return state;
}

Tensor TransformerGenerator::step(State& state, const std::vector<int32_t>& ids, Pass& pass) const {
  return model_.step_rows(attention_of(state), ids, pass);
}

Generator::Limits DecoderOnlyGenerator::limits() const {
  const DecoderOnlyConfig& c = model_.config();
  return {.vocabulary = c.vocabulary, .fewest = 1 - before(), .most = c.max_length - before() - 1, .end = c.end};
}

int64_t DecoderOnlyGenerator::room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) const {
  return AttentionState::room(prompts, width, longest);
}

std::vector<int32_t> DecoderOnlyGenerator::prefix(const std::vector<int32_t>& prompt) const {
  std::vector<int32_t> all;
  if (before() == 1) all.push_back(model_.config().begin);
  all.insert(all.end(), prompt.begin(), prompt.end());
  return all;
}

// All of a prompt but its last token, which the first step is given.
std::unique_ptr<Generator::State> DecoderOnlyGenerator::begin(const Prompts& prompts, int64_t room, Pass& pass) const {
  Prompts all;
  for (const auto& prompt : prompts) all.push_back(prefix(prompt));
  detail::BegunPrompts begun = detail::begun(all);
  auto state = std::make_unique<KeptAttention>(model_.begin(token_batch(begun.read), room, pass));
  state->first = std::move(begun.last);
  return state;
}

Tensor DecoderOnlyGenerator::step(State& state, const std::vector<int32_t>& ids, Pass& pass) const {
  return model_.step(attention_of(state), ids, pass);
}

}  // namespace mh
