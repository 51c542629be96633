// Files of pairs to tokenizer and token ids.
#include "multihead/tasks/data/corpus.h"

#include "multihead/tasks/settle_tokenizer.h"

namespace mh {

namespace {

std::vector<std::string> both_sides(const PairText& text) {
  std::vector<std::string> lines;
  lines.reserve(2 * static_cast<size_t>(text.size()));
  for (int64_t i = 0; i < text.size(); ++i) {
    lines.emplace_back(text.source(i));
    lines.emplace_back(text.target(i));
  }
  return lines;
}

Dataset encoded(const PairText& text, const Tokenizer& tokenizer, const TaskSetup& setup) {
  Dataset data(text, tokenizer, setup.max_length());
  if (setup.events.on_message)
    for (const std::string& sentence : data.report().sentences()) setup.events.on_message(sentence);
  return data;
}

}  // namespace

Corpus read_corpus(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  PairText train({data.train, data.train_target, data.source_column, data.target_column});
  Corpus out;
  if (!data.valid.empty())
    out.valid_text = PairText({data.valid, data.valid_target, data.source_column, data.target_column});
  if (data.valid.empty() && data.validates()) out.valid_text = train.hold_out(data.held_out(train.size()));
  out.tokenizer = detail::settle_tokenizer(setup, [&] { return both_sides(train); });
  out.train = encoded(train, out.tokenizer, setup);
  if (data.validates()) out.valid = encoded(out.valid_text, out.tokenizer, setup);
  return out;
}

}  // namespace mh
