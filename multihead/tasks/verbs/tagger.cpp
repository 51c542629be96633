// Texts through a tagger, a few thousand tokens at a time.
#include "multihead/tasks/verbs/tagger.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/metrics/entities.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/tasks/tag.h"
#include "multihead/text/learn_words.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr int64_t kTokensPerCall = 4096;

}  // namespace

struct Tagger::Parts {
  LabelledModel folder;
  DType compute;
};

Tagger Tagger::load(const std::string& folder, DType compute) {
  auto parts = std::make_shared<Parts>(Parts{load_tagger_model(folder), compute});
  parts->folder.model.pack(compute);
  return Tagger(parts);
}

const std::vector<std::string>& Tagger::labels() const { return parts_->folder.labels.names(); }

Tagging Tagger::operator()(std::string_view text) const {
  const std::string one[] = {std::string(text)};
  return (*this)(one).front();
}

std::vector<Tagging> Tagger::operator()(std::span<const std::string> texts) const {
  const TextModel& model = parts_->folder.model;
  std::vector<Tagging> out;
  for (size_t begin = 0; begin < texts.size();) {
    std::vector<std::vector<int32_t>> ids;
    std::vector<std::vector<int64_t>> firsts;
    std::vector<std::vector<std::string_view>> views;
    size_t n = begin;
    for (int64_t filled = 0; n < texts.size() && filled < kTokensPerCall; ++n) {
      check(!utf8_error(texts[n]), "Tagger: text {} is not UTF-8", n + 1);
      views.push_back(words_of(texts[n]));
      out.push_back({.words = {views.back().begin(), views.back().end()}});
      out.back().tags.assign(out.back().words.size(), "O");
      WordTokens tokens = encode_words(parts_->folder.tokenizer, out.back().words, model.max_length());
      out.back().cut = tokens.first.size() < out.back().words.size();
      filled += static_cast<int64_t>(tokens.ids.size());
      ids.push_back(std::move(tokens.ids));
      firsts.push_back(std::move(tokens.first));
    }
    Pass pass = Pass::inference(parts_->compute);
    const TokenBatch batch = token_batch(ids);
    const Tensor p = batch.at.rows == 0 ? Tensor() : softmax(model.logits(batch, {}, pass));
    int64_t row = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      Tagging& one = out[begin + i];
      std::vector<float> scores(one.words.size());
      for (size_t word = 0; word < firsts[i].size(); ++word) {
        const float* each = p.data<float>() + (row + firsts[i][word]) * p.size(1);
        const float* best = std::max_element(each, each + p.size(1));
        one.tags[word] = labels()[static_cast<size_t>(best - each)];
        scores[word] = *best;
      }
      row += static_cast<int64_t>(ids[i].size());
      const char* start = texts[begin + i].data();
      for (const Entity& entity : entities(one.tags)) {
        const std::string_view first = views[i][static_cast<size_t>(entity.first)],
                               last = views[i][static_cast<size_t>(entity.last)];
        float sum = 0;
        for (int64_t word = entity.first; word <= entity.last; ++word) sum += scores[static_cast<size_t>(word)];
        one.entities.push_back({.label = entity.type,
                                .begin = static_cast<size_t>(first.data() - start),
                                .end = static_cast<size_t>(last.data() - start) + last.size(),
                                .score = sum / static_cast<float>(entity.last - entity.first + 1)});
      }
    }
    begin = n;
  }
  return out;
}

}  // namespace mh
