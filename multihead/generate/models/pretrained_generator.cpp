// How prompts are handed to the two kinds of pretrained model.
#include "multihead/generate/models/pretrained_generator.h"

#include <algorithm>

#include "multihead/generate/models/kept_attention.h"
#include "multihead/models/pretrained/network.h"

namespace mh {

namespace {

// Of models whose positions have no end: what is written, and what is read.
constexpr int64_t kLongest = 4096, kMostRead = int64_t{1} << 20;

const InputEmbeddingOptions& written_embedding(const Architecture& a) {
  return a.decoder_embedding ? *a.decoder_embedding : *a.embedding;
}

}  // namespace

PretrainedGenerator::PretrainedGenerator(const Pretrained& model, int32_t decoder_start)
    : model_(model), start_(decoder_start) {
  const Architecture& a = model.architecture();
  const bool writes = a.head.kind == HeadKind::causal_lm || a.head.kind == HeadKind::seq2seq_lm;
  check(writes, "generate: a {} with a head for {} writes no text; expected a language model or a text-to-text model",
        a.family, name_of(a.head.kind));
  if (!translates()) return;
  if (start_ < 0) start_ = a.tokens.decoder_start;
  check(start_ >= 0 && start_ < written_embedding(a).vocabulary,
        "generate: the decoder begins with the token {}; expected decoder_start_token_id from 0 to {}", start_,
        written_embedding(a).vocabulary - 1);
}

bool PretrainedGenerator::translates() const { return model_.architecture().cross_attention; }

Generator::Limits PretrainedGenerator::limits() const {
  const Architecture& a = model_.architecture();
  const int64_t positions = a.embedding->max_positions;
  return {.vocabulary = a.head.outputs,
          .fewest = 1,
          .most = positions == 0 ? kMostRead
                  : translates() ? positions
                                 : positions - 1,
          .end = a.tokens.ends.empty() ? -1 : a.tokens.ends.front(),
          .prompt_vocabulary = a.embedding->vocabulary};
}

int64_t PretrainedGenerator::most_written(int64_t prompt) const {
  const int64_t positions = written_embedding(model_.architecture()).max_positions;
  if (positions == 0) return kLongest;
  return translates() ? positions : positions - prompt;
}

std::vector<int32_t> PretrainedGenerator::prefix(const std::vector<int32_t>& prompt) const {
  return translates() ? std::vector<int32_t>{start_} : prompt;
}

int64_t PretrainedGenerator::room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) const {
  if (translates()) return AttentionState::room(static_cast<int64_t>(prompts.size()), width, longest);
  return AttentionState::room(prompts, width, longest);
}

std::unique_ptr<Generator::State> PretrainedGenerator::begin(const Prompts& prompts, int64_t room, Pass& pass) const {
  const Network& network = model_.network();
  std::unique_ptr<detail::KeptAttention> state;
  if (translates()) {
    const EncoderOutput memory = network.bridged(network.encode(token_batch(prompts), {}, pass), pass);
    state = std::make_unique<detail::KeptAttention>(network.begin(memory, room, pass));
    state->first.assign(prompts.size(), start_);
  } else {
    detail::BegunPrompts begun = detail::begun(prompts);
    state = std::make_unique<detail::KeptAttention>(network.begin(token_batch(begun.read), room, pass));
    state->first = std::move(begun.last);
  }
  return state;
}

Tensor PretrainedGenerator::step(State& state, const std::vector<int32_t>& ids, Pass& pass) const {
  return model_.network().step(detail::attention_of(state), ids, pass);
}

Tensor PretrainedGenerator::logits(const Tensor& rows) const {
  Pass pass = Pass::inference(rows.dtype());
  return (*model_.network().head)(rows, pass);
}

}  // namespace mh
