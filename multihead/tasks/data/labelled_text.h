// Texts, or pairs of texts, each with a label: read from a table, and kept as token ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tasks/data/labels.h"
#include "multihead/tasks/readers/table_file.h"
#include "multihead/tasks/task_setup.h"
#include "multihead/text/tokenizer.h"

namespace mh {

struct LabelledText {
  std::string text{}, pair{}, label{};
  int64_t line = 0;  // in its file, from 1
};

struct LabelledTexts {
  std::string name{};  // of the file
  std::vector<LabelledText> rows{};
  std::vector<std::string> report{};  // a sentence for every rule that skipped something

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
  // "test.tsv:7"
  std::string where(size_t row) const;
  // Takes `count` rows out, all of a text together. Throws: as detail::held_out.
  LabelledTexts hold_out(int64_t count);
};

// The rows of a file by the columns that `data` names. Rows without a text or a label are skipped and counted.
// Throws: as TableFile; invalid_argument where no row is left.
LabelledTexts read_labelled(const std::string& path, const DataConfig& data);

// The ids of a text, or of a pair where `pair` is not empty, with the tokenizer's special tokens, cut to max_length.
// Never empty: a text without a token has the unknown word, or id 0.
Encoded encode_text(const Tokenizer& tokenizer, std::string_view text, std::string_view pair, int64_t max_length);

// The texts as tokens, cut to max_length, special tokens of the tokenizer included.
class EncodedTexts {
 public:
  EncodedTexts() = default;
  // Encodes on all threads, as encode_text.
  EncodedTexts(const LabelledTexts& texts, const Tokenizer& tokenizer, int64_t max_length);

  int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  int64_t longest() const;  // tokens of a text
  std::span<const int32_t> ids(int64_t text) const { return part(ids_, text); }
  std::span<const int32_t> types(int64_t text) const { return part(types_, text); }
  // A hash of all ids and where they end.
  std::string digest() const;

 private:
  std::span<const int32_t> part(const std::vector<int32_t>& all, int64_t text) const {
    const auto begin = static_cast<size_t>(starts_[static_cast<size_t>(text)]);
    return std::span(all).subspan(begin, static_cast<size_t>(starts_[static_cast<size_t>(text) + 1]) - begin);
  }
  std::vector<int32_t> ids_, types_;
  std::vector<int64_t> starts_{0};
};

}  // namespace mh
