// Sentences of words with tags, a word a line: the column format of CoNLL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mh {

struct TaggedSentence {
  std::vector<std::string> words{}, tags{};
  int64_t line = 0;  // of its first word, from 1
};

struct ConllOptions {
  int64_t word_column = 1, tag_column = 2;  // from 1; -1 is the last
  int64_t max_broken = 100;
};

struct TaggedSentences {
  std::string name{};  // of the file
  std::vector<TaggedSentence> sentences{};
  std::vector<std::string> report{};  // a sentence for every rule that skipped something
};

// Columns stand apart by spaces or tabs; a blank line ends a sentence; lines that begin with -DOCSTART- are passed
// over. gzip and xz are unpacked. A sentence with a line that lacks a column or is not UTF-8 is skipped, and the line
// counts as broken. Throws: as read_text and BrokenRows::add; invalid_argument where no sentence is left.
TaggedSentences read_conll(const std::string& path, const ConllOptions& options);

}  // namespace mh
