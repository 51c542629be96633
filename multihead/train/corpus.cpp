// Files to tokenizer and token ids.
#include "multihead/train/corpus.h"

#include <utility>

#include "multihead/base/error.h"

namespace mh {

namespace {

Tokenizer learn(const TokenizerConfig& config, const PairText& text, const TrainEvents& events) {
  std::vector<std::string> lines;
  lines.reserve(2 * static_cast<size_t>(text.size()));
  for (int64_t i = 0; i < text.size(); ++i) {
    lines.emplace_back(text.source(i));
    lines.emplace_back(text.target(i));
  }
  BpeOptions options{.vocabulary = static_cast<int32_t>(config.vocabulary),
                     .lowercase = config.lowercase,
                     .normalisation = config.normalise};
  if (events.on_wait)
    options.progress = [&](int64_t done, int64_t total) { events.on_wait("learning the tokenizer", done, total); };
  return train_bpe(lines, options);
}

void require_special(const Tokenizer& tokenizer, const char* token, int32_t expected) {
  const std::optional<int32_t> id = tokenizer.id(token);
  check(id.has_value(), "tokenizer: there is no token {}; expected it with id {}", token, expected);
  check(*id == expected && tokenizer.is_special(*id),
        "tokenizer: the token {} has id {}{}; expected a special one with id {}", token, *id,
        tokenizer.is_special(*id) ? "" : " and is not special", expected);
}

void check_tokenizer(const Tokenizer& tokenizer, const TransformerConfig& model) {
  require_special(tokenizer, "<pad>", model.pad);
  require_special(tokenizer, "<s>", model.begin);
  require_special(tokenizer, "</s>", model.end);
  check(model.vocabulary == 0 || model.vocabulary == tokenizer.size(),
        "config: model.vocabulary is {}, and the tokenizer has {} tokens; expected the same number, or 0", model.vocabulary,
        tokenizer.size());
}

Dataset encode(const PairText& text, const Tokenizer& tokenizer, int64_t max_length, const TrainEvents& events) {
  Dataset data(text, tokenizer, max_length);
  if (events.on_message)
    for (const std::string& sentence : data.report().sentences()) events.on_message(sentence);
  return data;
}

}  // namespace

Corpus read_corpus(const TrainConfig& config, const TrainEvents& events, const std::string& tokenizer) {
  const DataConfig& data = config.data;
  const int64_t max_length = data.max_length == 0 ? config.model.max_length : data.max_length;
  PairText train({data.train, data.train_target, data.source_column, data.target_column});
  Corpus out;
  if (!data.valid.empty())
    out.valid_text = PairText({data.valid, data.valid_target, data.source_column, data.target_column});
  if (data.hold_out > 0) out.valid_text = train.hold_out(data.hold_out);
  const std::string& path = tokenizer.empty() ? config.tokenizer.path : tokenizer;
  out.tokenizer = path.empty() ? learn(config.tokenizer, train, events) : Tokenizer::load(path);
  check_tokenizer(out.tokenizer, config.model);
  out.train = encode(train, out.tokenizer, max_length, events);
  if (data.validates()) out.valid = encode(out.valid_text, out.tokenizer, max_length, events);
  return out;
}

}  // namespace mh
