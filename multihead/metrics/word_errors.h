// The word error rate of transcripts, equal to jiwer's on texts that need no cleaning.
//
//   WER = errors / words of the references
//
// Errors: the fewest words to replace, delete or insert to turn a hypothesis into its reference, summed over all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mh {

struct WordErrors {
  double rate = 0;  // 0 is perfect; above 1 where much was inserted
  int64_t errors = 0, words = 0;
};

// Words are split at white space and compared as they are: case and punctuation count. Broken UTF-8 is read as U+FFFD.
// Throws: invalid_argument where the lists differ in length or no reference has a word.
WordErrors word_errors(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);

}  // namespace mh
