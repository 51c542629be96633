// Answers to questions against those of people.
#include "multihead/metrics/answers.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "multihead/base/error.h"
#include "multihead/metrics/metric_text.h"

namespace mh {

namespace {

using Words = std::vector<std::u32string>;

// What Python's \w takes; the underscore is gone with the punctuation.
bool is_word_character(char32_t c) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & (U_GC_L_MASK | U_GC_N_MASK)) != 0;
}

bool is_article(std::u32string_view word) { return word == U"a" || word == U"an" || word == U"the"; }

// An article is a whole run of word characters; what stands around it, a dash or an accent of its own, stays.
std::u32string without_articles(const std::u32string& text) {
  std::u32string out;
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if_not(at, text.end(), is_word_character);
    if (end == at) {
      out += *at++;
      continue;
    }
    const std::u32string word(at, end);
    out += is_article(word) ? U" " : word;
    at = end;
  }
  return out;
}

Words normalised_words(std::string_view text) {
  std::u32string line = detail::code_points(detail::lower_case(text));
  std::erase_if(line, detail::is_ascii_punctuation);
  return detail::split(without_articles(line));
}

double word_f1(const Words& prediction, const Words& answer) {
  std::map<std::u32string_view, int64_t> left;
  for (const std::u32string& word : answer) ++left[word];
  int64_t shared = 0;
  for (const std::u32string& word : prediction) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++shared;
  }
  if (shared == 0) return 0;
  const double precision = static_cast<double>(shared) / static_cast<double>(prediction.size());
  const double recall = static_cast<double>(shared) / static_cast<double>(answer.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace

std::string normalised_answer(std::string_view text) {
  std::u32string out;
  for (const std::u32string& word : normalised_words(text)) out += (out.empty() ? U"" : U" ") + word;
  return detail::utf8(out);
}

AnswerScores answer_scores(const std::string& prediction, const std::vector<std::string>& answers,
                           SquadVersion version) {
  std::vector<Words> expected;
  for (const std::string& answer : answers) expected.push_back(normalised_words(answer));
  if (version == SquadVersion::v2) {
    std::erase_if(expected, [](const Words& words) { return words.empty(); });
    if (expected.empty()) expected.emplace_back();
  }
  check(!expected.empty(), "answer_scores: a question without an answer; SQuAD 1.1 expects at least 1");

  const Words ours = normalised_words(prediction);
  AnswerScores best;
  for (const Words& words : expected) {
    const double exact = ours == words ? 1 : 0;
    const bool nothing = version == SquadVersion::v2 && (ours.empty() || words.empty());
    best.exact_match = std::max(best.exact_match, exact);
    best.f1 = std::max(best.f1, nothing ? exact : word_f1(ours, words));
  }
  return best;
}

AnswerScores answer_scores(const std::vector<std::string>& predictions,
                           const std::vector<std::vector<std::string>>& answers, SquadVersion version) {
  check(predictions.size() == answers.size(),
        "answer_scores: {} predictions and answers for {} questions; expected the same number", predictions.size(),
        answers.size());
  check(!predictions.empty(), "answer_scores: no questions; expected at least 1");
  AnswerScores sum;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const AnswerScores one = answer_scores(predictions[i], answers[i], version);
    sum.exact_match += one.exact_match;
    sum.f1 += one.f1;
  }
  const auto questions = static_cast<double>(predictions.size());
  return {.exact_match = 100 * sum.exact_match / questions, .f1 = 100 * sum.f1 / questions};
}

}  // namespace mh
