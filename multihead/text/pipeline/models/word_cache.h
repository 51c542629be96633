// Words that were cut into tokens lately, so that the next time they are found and not computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "multihead/text/pipeline/models/word_model.h"

namespace mh::detail {

// One of a thread for a model: a word has one place, a cache line, where the latest of its kind stays.
class WordCache {
 public:
  static constexpr size_t kLongest = 30, kTokens = 5;

  // Appends the word's tokens where they are known.
  bool find(std::string_view word, uint64_t hash, WordTokens& out) const {
    const Line& line = lines_[hash & kMask];
    if (line.size != word.size() || std::memcmp(line.word, word.data(), word.size()) != 0) return false;
    for (size_t i = 0; i < line.count; ++i) out.push_back({line.ids[i], line.begins[i], line.ends[i]});
    return true;
  }

  // `word` has 1 to kLongest bytes.
  void keep(std::string_view word, uint64_t hash, const WordToken* tokens, size_t count) {
    if (count > kTokens || (count > 0 && tokens[count - 1].end > 0xff)) return;
    Line& line = lines_[hash & kMask];
    line.size = static_cast<uint8_t>(word.size());
    line.count = static_cast<uint8_t>(count);
    std::memcpy(line.word, word.data(), word.size());
    for (size_t i = 0; i < count; ++i) {
      line.ids[i] = tokens[i].id;
      line.begins[i] = static_cast<uint8_t>(tokens[i].begin);
      line.ends[i] = static_cast<uint8_t>(tokens[i].end);
    }
  }

  // This thread's cache for the model of this number.
  static WordCache& of(uint64_t model);
  // A number that no model had before.
  static uint64_t next_model();

 private:
  static constexpr size_t kLines = size_t{1} << 14, kMask = kLines - 1;
  struct alignas(64) Line {
    uint8_t size = 0, count = 0;
    char word[kLongest];
    uint8_t begins[kTokens], ends[kTokens];
    int32_t ids[kTokens];
  };
  static_assert(sizeof(Line) == 64);

  std::vector<Line> lines_ = std::vector<Line>(kLines);
};

}  // namespace mh::detail
