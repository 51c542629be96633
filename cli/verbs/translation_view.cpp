// Columns, JSON and pictures of a translation.
#include "cli/verbs/translation_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/one_line.h"
#include "cli/verbs/heat_map.h"
#include "multihead/tasks/results/result_json.h"

namespace mh::cli {

namespace {

HeatMap heat_map_of(const CrossAttention& attention, int64_t head) {
  HeatMap map{.rows = attention.target, .columns = attention.source, .weights = {}};
  const int64_t heads = attention.weights.size(0), first = head > 0 ? head - 1 : 0, last = head > 0 ? head : heads;
  for (int64_t t = 0; t < attention.weights.size(1); ++t) {
    map.weights.emplace_back();
    for (int64_t s = 0; s < attention.weights.size(2); ++s) {
      double sum = 0;
      for (int64_t h = first; h < last; ++h) sum += attention.weights.item({h, t, s});
      map.weights.back().push_back(static_cast<float>(sum / static_cast<double>(last - first)));
    }
  }
  return map;
}

std::string pictures(const TranslationView& view, const Translator& translator, const Candidate& candidate) {
  std::string out;
  for (const TranslatedSentence& sentence : candidate.sentences) {
    const CrossAttention attention = translator.cross_attention(sentence, view.layer);
    out += fmt::format("\n{}", draw(heat_map_of(attention, view.head), ink_of_stdout(), width_of_stdout()));
  }
  return out.empty() ? out : out + "\n";
}

std::string columns(const TranslationView& view, const Translator& translator, int64_t number,
                    const Candidate& candidate) {
  std::string out;
  if (view.numbers) out += fmt::format("{}\t", number);
  if (view.scores) out += fmt::format("{:.4f}\t", candidate.score);
  out += one_line(candidate.text);
  if (view.alignments) {
    std::vector<std::string> pairs;
    for (const auto& [i, j] : translator.align(candidate, view.layer)) pairs.push_back(fmt::format("{}-{}", i, j));
    out += fmt::format("\t{}", fmt::join(pairs, " "));
  }
  out += "\n";
  return view.attention ? out + pictures(view, translator, candidate) : out;
}

}  // namespace

std::string shown(const TranslationView& view, const Translator& translator, int64_t number,
                  const Translation& translation) {
  std::string out;
  for (size_t rank = 0; rank < translation.candidates.size(); ++rank) {
    const Candidate& candidate = translation.candidates[rank];
    if (!view.json) {
      out += columns(view, translator, number, candidate);
      continue;
    }
    const CandidatePlace place{.line = number, .rank = static_cast<int64_t>(rank) + 1, .cut = translation.cut};
    out += to_json(candidate, place, translator, view.layer) + "\n";
  }
  return out;
}

std::optional<double> lowest_mean(const Translation& translation) {
  std::optional<double> lowest;
  for (const TranslatedSentence& sentence : translation.candidates.front().sentences) {
    const auto& scores = sentence.token_scores;
    if (scores.empty()) continue;
    const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
    lowest = std::min(lowest.value_or(mean), mean);
  }
  return lowest;
}

}  // namespace mh::cli
