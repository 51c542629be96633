// Sentence pairs: read from files with one rule for every defect, and kept as token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/text_lines.h"
#include "multihead/text/tokenizer.h"

namespace mh {

// One file of tab-separated lines, or two files whose lines belong together.
struct PairFiles {
  std::string source{};
  std::string target{};                          // empty: `source` is TSV
  int64_t source_column = 1, target_column = 2;  // of TSV, counted from 1; further columns are counted, not read
};

// What was skipped, and why.
struct PairReport {
  struct Rule {
    int64_t count = 0, first_line = 0;
  };
  std::string name{};  // of the file or files
  int64_t lines = 0, kept = 0;
  Rule empty{};  // a side holds nothing but white space
  BrokenLines broken{};
  Rule long_line{};    // more than kLongestLine bytes
  Rule long_tokens{};  // a side has more than max_length tokens
  int64_t max_length = 0;
  Rule extra_columns{};  // lines of TSV with more columns than those that are read; they are kept
  int64_t source_column = 0, target_column = 0;

  // A sentence for every rule that met something.
  std::vector<std::string> sentences() const;
};

// Text beyond this is no sentence, and one such line would take a tokenizer's training minutes.
inline constexpr int64_t kLongestLine = 65536;

// The pairs of a file as text, read by the rule of text_lines.h; gzip and xz are unpacked.
class PairText {
 public:
  PairText() = default;
  // Lines with an empty side, with a side that is not UTF-8 and of more than kLongestLine bytes are skipped and
  // counted. Throws: io where a file cannot be read; invalid_argument, with the line, where a column is missing, where
  // two files have not as many lines, and where no pair is left.
  explicit PairText(const PairFiles& files);

  // Takes `pairs` pairs out, and those of the same sources with them, as a text of their own; both keep their order.
  // Which ones follows from the sources alone, not from their places. Throws: invalid_argument where more than half
  // would go.
  PairText hold_out(int64_t pairs);

  int64_t size() const { return static_cast<int64_t>(pairs_.size()); }
  std::string_view source(int64_t pair) const { return pairs_[static_cast<size_t>(pair)].source; }
  std::string_view target(int64_t pair) const { return pairs_[static_cast<size_t>(pair)].target; }
  // Where it stands in the file, counted from 1.
  int64_t line(int64_t pair) const { return pairs_[static_cast<size_t>(pair)].line; }
  const PairReport& report() const { return report_; }

 private:
  struct Pair {
    std::string_view source, target;
    int64_t line;
  };
  void add(std::string_view source, std::string_view target);
  bool skips_line(bool blank, int64_t bytes);
  void read_tsv(const PairFiles& files);
  void read_two(const PairFiles& files);
  std::string_view open(const std::string& path);

  std::vector<std::shared_ptr<void>> files_;  // what the views look at
  std::vector<Pair> pairs_;
  PairReport report_;
};

// The pairs as token ids without special tokens, one behind the other in one array.
class Dataset {
 public:
  Dataset() = default;
  // Encodes on all threads. Pairs with more than `max_length` tokens on a side, its end included, are skipped and
  // counted. Throws: invalid_argument where no pair is left.
  Dataset(const PairText& text, const Tokenizer& tokenizer, int64_t max_length);

  int64_t size() const { return static_cast<int64_t>(starts_.size()) / 2; }
  std::span<const int32_t> source(int64_t pair) const { return side(2 * pair); }
  std::span<const int32_t> target(int64_t pair) const { return side(2 * pair + 1); }
  int64_t text_pair(int64_t pair) const { return text_pairs_[static_cast<size_t>(pair)]; }  // its number in the text
  // Of all pairs, an end for every side included.
  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return target_tokens_; }
  const PairReport& report() const { return report_; }
  // A hash of all ids and where they end: other pairs, or another order of them, have another.
  std::string digest() const;

 private:
  std::span<const int32_t> side(int64_t number) const {
    const auto begin = static_cast<size_t>(starts_[static_cast<size_t>(number)]);
    return std::span(ids_).subspan(begin, static_cast<size_t>(starts_[static_cast<size_t>(number) + 1]) - begin);
  }

  std::vector<int32_t> ids_;     // source and target of each pair in turn
  std::vector<int64_t> starts_;  // 2 · pairs + 1
  std::vector<int64_t> text_pairs_;
  int64_t source_tokens_ = 0, target_tokens_ = 0;
  PairReport report_;
};

}  // namespace mh
