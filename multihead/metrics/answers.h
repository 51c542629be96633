// Answers to questions against those of people: exact match and F1, equal to the scripts of SQuAD 1.1 and 2.0.
//
// Both sides are normalised first. Exact match: whether they are equal. F1: of the words they share, each counted as
// often as both have it:
//
//   precision = shared / words of the prediction     recall = shared / words of the answer
//   F1        = 2 precision recall / (precision + recall),   0 where nothing is shared
//
// Of several answers, exact match and F1 each take their best.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

// v1_1: an answer without words has F1 0 with anything.  v2: such an answer is left out where a question has others;
// where no answer is left, the question has none, and only a prediction without words scores: 1.
enum class SquadVersion { v1_1, v2 };

struct AnswerScores {
  double exact_match = 0, f1 = 0;
};

// Lower case; without the punctuation of ASCII; without the words "a", "an", "the"; one space between words. Broken
// UTF-8 is read as U+FFFD.
std::string normalised_answer(std::string_view text);

// Of one question, 0 to 1. Throws: invalid_argument where SQuAD 1.1 gets no answer.
AnswerScores answer_scores(const std::string& prediction, const std::vector<std::string>& answers,
                           SquadVersion version = SquadVersion::v1_1);

// The mean over all questions, 0 to 100; answers[i] are those to question i.
// Throws: invalid_argument where there is no question, the lists differ in length, or SQuAD 1.1 gets no answer.
AnswerScores answer_scores(const std::vector<std::string>& predictions,
                           const std::vector<std::vector<std::string>>& answers,
                           SquadVersion version = SquadVersion::v1_1);

}  // namespace mh
