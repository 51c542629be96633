// JSON of results, key by key.
#include "multihead/tasks/results/result_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace mh {

namespace {

using ResultJson = nlohmann::ordered_json;

// A model's text may hold what is no UTF-8; JSON may not.
std::string dumped(const ResultJson& json) { return json.dump(-1, ' ', false, ResultJson::error_handler_t::replace); }

ResultJson candidate_json(const Candidate& candidate, const CandidatePlace& place) {
  return {{"line", place.line},
          {"rank", place.rank},
          {"text", candidate.text},
          {"score", candidate.score},
          {"cut", place.cut}};
}

ResultJson tokens_json(const Candidate& candidate, const Translator& translator, int64_t layer) {
  ResultJson tokens = ResultJson::array();
  for (const TranslatedSentence& sentence : candidate.sentences) {
    const CrossAttention attention = translator.cross_attention(sentence, layer);
    for (size_t n = 0; n < sentence.token_scores.size(); ++n)
      tokens.push_back({{"text", attention.target[n]}, {"log_p", sentence.token_scores[n]}});
  }
  return tokens;
}

}  // namespace

int64_t characters_before(std::string_view text, size_t byte) {
  return std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::vector<size_t> by_score(const Classification& one) {
  std::vector<size_t> order(one.scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return one.scores[a] > one.scores[b]; });
  return order;
}

std::string to_json(const Classification& one, std::span<const std::string> labels) {
  ResultJson out{{"label", one.label}, {"score", one.score}};
  if (!labels.empty())
    for (const size_t n : by_score(one)) out["scores"][labels[n]] = one.scores[n];
  return dumped(out);
}

std::string to_json(const Tagging& found, const std::string& text) {
  ResultJson out = ResultJson::array();
  for (const TaggedSpan& span : found.entities)
    out.push_back({{"begin", characters_before(text, span.begin)},
                   {"end", characters_before(text, span.end)},
                   {"label", span.label},
                   {"score", span.score},
                   {"text", text.substr(span.begin, span.end - span.begin)}});
  return dumped(out);
}

std::string to_json(const Answer& one, const std::string& context) {
  return dumped({{"answer", one.text},
                 {"score", one.score},
                 {"begin", characters_before(context, one.begin)},
                 {"end", characters_before(context, one.end)}});
}

std::string to_json(const Filled& found) {
  ResultJson out = ResultJson::array();
  for (const Gap& gap : found.gaps) {
    ResultJson each = ResultJson::array();
    for (const Filling& one : gap.fillings)
      each.push_back({{"token", one.token}, {"id", one.id}, {"score", one.score}, {"text", one.text}});
    out.push_back(each);
  }
  return dumped(out);
}

std::string to_json(const Continuation& written, const std::string& prompt, int64_t line) {
  return dumped({{"line", line},
                 {"prompt", prompt},
                 {"text", written.text},
                 {"tokens", written.token_scores.size()},
                 {"ended", written.ended},
                 {"score", written.score}});
}

std::string summary_to_json(const Translation& summary, int64_t line) {
  const Candidate& best = summary.candidates.front();
  return dumped({{"line", line},
                 {"text", best.text},
                 {"tokens", best.token_scores.size()},
                 {"source_tokens", summary.source_tokens},
                 {"cut", summary.cut},
                 {"ended", best.ended},
                 {"score", best.score}});
}

std::string to_json(const Candidate& candidate, const CandidatePlace& place) {
  return dumped(candidate_json(candidate, place));
}

std::string to_json(const Candidate& candidate, const CandidatePlace& place, const Translator& translator,
                    int64_t layer) {
  ResultJson out = candidate_json(candidate, place);
  out["tokens"] = tokens_json(candidate, translator, layer);
  out["alignment"] = translator.align(candidate, layer);
  return dumped(out);
}

}  // namespace mh
