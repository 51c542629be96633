// Questions about paragraphs, with their answers: the JSON of SQuAD 1.1 and 2.0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mh {

struct SquadAnswer {
  std::string text{};
  size_t begin = 0;  // byte of the context
};

struct SquadQuestion {
  std::string id{}, question{};
  size_t context = 0;                  // its number in `contexts`
  std::vector<SquadAnswer> answers{};  // none: the context holds no answer
};

struct SquadFile {
  std::string name{};
  std::vector<std::string> contexts{};
  std::vector<SquadQuestion> questions{};
  std::vector<std::string> report{};  // a sentence for every rule that skipped something
};

// answer_start counts characters, as Python does. A question counts as broken where a field is missing or of another
// type, or an answer does not stand where it is said to; sentences name questions by their number, counted from 1, in
// place of a line. gzip and xz are unpacked. Throws: as read_text and BrokenRows::add; io where the file is not JSON of
// this form; invalid_argument where no question is left.
SquadFile read_squad(const std::string& path, int64_t max_broken = 100);

}  // namespace mh
