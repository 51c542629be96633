// Words that are one token: found by their bytes, without merging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace mh::detail {

// Views what it is given: the bytes must outlive it.
class WordTable {
 public:
  struct Word {
    std::string_view bytes;
    int32_t token = -1;
    uint32_t tag = 0;  // part of the hash: most words that are not equal differ here already
  };

  WordTable() = default;
  explicit WordTable(const std::vector<Word>& words) {
    size_t size = 1;
    while (size < 2 * words.size() + 1) size *= 2;
    slots_.assign(size, {});
    mask_ = size - 1;
    for (const Word& word : words) {
      const uint64_t hash = hash_of(word.bytes);
      size_t at = hash & mask_;
      while (slots_[at].token >= 0) at = (at + 1) & mask_;
      slots_[at] = {word.bytes, word.token, tag_of(hash)};
    }
  }

  // -1 where the word is not in the table.
  int32_t find(std::string_view word) const { return find(word, hash_of(word)); }
  int32_t find(std::string_view word, uint64_t hash) const {
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Word& slot = slots_[at];
      if (slot.token < 0 || (slot.tag == tag_of(hash) && slot.bytes == word)) return slot.token;
    }
  }

  static uint64_t hash_of(std::string_view word) {
    uint64_t hash = word.size();
    for (; word.size() > 8; word.remove_prefix(8)) hash = mix(hash ^ load<8>(word.data()));
    return mix(hash ^ last_bytes(word));
  }

 private:
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

  // The high half of a product depends on every bit of what was multiplied: both halves are put together.
  static uint64_t mix(uint64_t a) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * 0x9e3779b97f4a7c15u;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  // Up to eight bytes as a number, by loads that may overlap: no loop and no call.
  static uint64_t last_bytes(std::string_view word) {
    const size_t size = word.size();
    if (size >= 4) return load<4>(word.data()) << 32 | load<4>(word.data() + size - 4);
    if (size >= 2) return load<2>(word.data()) << 16 | load<2>(word.data() + size - 2);
    return size == 0 ? 0 : load<1>(word.data());
  }

  template <size_t kCount>
  static uint64_t load(const char* from) {
    uint64_t value = 0;
    std::memcpy(&value, from, kCount);
    return value;
  }

  std::vector<Word> slots_ = std::vector<Word>(1);
  size_t mask_ = 0;
};

}  // namespace mh::detail
