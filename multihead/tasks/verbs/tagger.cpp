// Texts through a tagger, a few thousand tokens at a time.
#include "multihead/tasks/verbs/tagger.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/metrics/entities.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/tasks/tag.h"
#include "multihead/tasks/verbs/judged_tokens.h"
#include "multihead/tasks/verbs/text_encoder.h"
#include "multihead/text/learn_words.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr int64_t kTokensPerCall = 4096;

// What a model of our own says of a text's words, of which some have no place in it.
Tagging tagged_words(std::string_view text, const std::vector<std::string_view>& words,
                     const std::vector<std::string>& labels, const std::vector<const float*>& p, bool each) {
  Tagging out{.words = {words.begin(), words.end()}, .cut = p.size() < words.size()};
  out.tags.assign(words.size(), "O");
  std::vector<float> scores(words.size());
  for (size_t word = 0; word < p.size(); ++word) {
    const float* best = std::max_element(p[word], p[word] + labels.size());
    out.tags[word] = labels[static_cast<size_t>(best - p[word])];
    scores[word] = *best;
  }
  std::vector<Entity> found;
  if (each) {
    for (size_t word = 0; word < words.size(); ++word)
      if (const auto n = static_cast<int64_t>(word); out.tags[word] != "O") found.push_back({out.tags[word], n, n});
  } else {
    found = entities(out.tags);
  }
  for (const Entity& entity : found) {
    const std::string_view first = words[static_cast<size_t>(entity.first)],
                           last = words[static_cast<size_t>(entity.last)];
    float sum = 0;
    for (int64_t word = entity.first; word <= entity.last; ++word) sum += scores[static_cast<size_t>(word)];
    out.entities.push_back({.label = entity.type,
                            .begin = static_cast<size_t>(first.data() - text.data()),
                            .end = static_cast<size_t>(last.data() - text.data()) + last.size(),
                            .score = sum / static_cast<float>(entity.last - entity.first + 1)});
  }
  return out;
}

}  // namespace

struct Tagger::Parts {
  LabelledModel folder;
  DType compute;
  bool marks_words = false;

  const std::vector<std::string>& labels() const { return folder.labels.names(); }
  Tensor probabilities(const std::vector<std::vector<int32_t>>& ids, const std::vector<int32_t>& types) const;
  std::vector<Tagging> by_words(std::span<const std::string> texts, const TagOptions& options) const;
  std::vector<Tagging> by_tokens(std::span<const std::string> texts, const TagOptions& options) const;
};

// (tokens, labels), a row for each.
Tensor Tagger::Parts::probabilities(const std::vector<std::vector<int32_t>>& ids,
                                    const std::vector<int32_t>& types) const {
  Pass pass = Pass::inference(compute);
  const Tensor all = types.empty() ? Tensor() : tensor<int32_t>(types, {static_cast<int64_t>(types.size())});
  return softmax(folder.model.logits(token_batch(ids), all, pass));
}

std::vector<Tagging> Tagger::Parts::by_words(std::span<const std::string> texts, const TagOptions& options) const {
  std::vector<std::vector<int32_t>> ids;
  std::vector<WordTokens> tokens;
  std::vector<std::vector<std::string_view>> words;
  for (const std::string& text : texts) {
    words.push_back(words_of(text));
    tokens.push_back(encode_words(folder.tokenizer, std::vector<std::string>(words.back().begin(), words.back().end()),
                                  folder.max_length));
    ids.push_back(tokens.back().ids);
  }
  const Tensor p = probabilities(ids, {});
  std::vector<Tagging> out;
  const float* row = p.data<float>();
  for (size_t n = 0; n < texts.size(); ++n) {
    std::vector<const float*> rows;
    for (const int64_t first : tokens[n].first) rows.push_back(row + first * p.size(1));
    row += static_cast<int64_t>(ids[n].size()) * p.size(1);
    out.push_back(tagged_words(texts[n], words[n], labels(), rows, options.aggregation == Aggregation::none));
  }
  return out;
}

std::vector<Tagging> Tagger::Parts::by_tokens(std::span<const std::string> texts, const TagOptions& options) const {
  const auto around = static_cast<int64_t>(folder.tokenizer.encode_input("").ids.size());
  const int64_t room = folder.max_length - around, stride = std::min(options.stride, room / 2);
  std::vector<Encoded> windows;
  std::vector<size_t> ends;  // by text: behind its last window
  for (const std::string& text : texts) {
    for (Encoded& each : folder.tokenizer.encode_windows(text, {.max_length = folder.max_length, .stride = stride}))
      if (!each.ids.empty()) windows.push_back(std::move(each));
    ends.push_back(windows.size());
  }
  std::vector<std::vector<float>> p(windows.size());
  in_batches(windows, kTokensPerCall, [&](std::span<const size_t> which) {
    std::vector<std::vector<int32_t>> ids;
    std::vector<int32_t> types;
    for (const size_t n : which) {
      ids.push_back(windows[n].ids);
      types.insert(types.end(), windows[n].types.begin(), windows[n].types.end());
    }
    const Tensor rows = probabilities(ids, types);
    const float* row = rows.data<float>();
    for (const size_t n : which) {
      const float* end = row + static_cast<int64_t>(windows[n].ids.size()) * rows.size(1);
      p[n].assign(row, end);
      row = end;
    }
  });
  std::vector<Tagging> out;
  for (size_t text = 0, window = 0; text < texts.size(); ++text) {
    detail::JudgedTokens tokens{.labels = labels().size()};
    size_t first = 0;
    for (const size_t begin = window; window < ends[text]; ++window, first += static_cast<size_t>(room - stride))
      detail::add_window(tokens, {windows[window], p[window].data(), first, window == begin, window + 1 == ends[text]});
    out.push_back(detail::aggregated(tokens, detail::goes_on(tokens, texts[text], marks_words), texts[text], labels(),
                                     options.aggregation));
  }
  return out;
}

Tagger Tagger::load(const std::string& folder, DType compute) {
  auto parts = std::make_shared<Parts>(Parts{load_tagger_model(folder), compute});
  parts->folder.model.pack(compute);
  parts->marks_words = parts->folder.tokenizer.marks_words();
  return Tagger(parts);
}

const std::vector<std::string>& Tagger::labels() const { return parts_->labels(); }

const std::vector<std::string>& Tagger::unused() const { return parts_->folder.model.unused(); }

Tagging Tagger::operator()(std::string_view text, const TagOptions& options) const {
  const std::string one[] = {std::string(text)};
  return (*this)(one, options).front();
}

std::vector<Tagging> Tagger::operator()(std::span<const std::string> texts, const TagOptions& options) const {
  check(options.stride >= 0, "Tagger: stride {}; expected 0 or more", options.stride);
  std::vector<Tagging> out;
  for (size_t begin = 0; begin < texts.size();) {
    size_t n = begin;
    // Counted in bytes: four or so make a token.
    for (size_t filled = 0; n < texts.size() && filled < size_t{4 * kTokensPerCall}; ++n) {
      check(!utf8_error(texts[n]), "Tagger: text {} is not UTF-8", n + 1);
      filled += texts[n].size() + 1;
    }
    const std::span<const std::string> lot = texts.subspan(begin, n - begin);
    const bool own = parts_->folder.model.own() != nullptr;
    for (Tagging& each : own ? parts_->by_words(lot, options) : parts_->by_tokens(lot, options))
      out.push_back(std::move(each));
    begin = n;
  }
  return out;
}

}  // namespace mh
