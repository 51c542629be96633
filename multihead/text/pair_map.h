// A flat hash table keyed by a pair of token ids: what encoding and training ask all the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mh::detail {

struct Pair {
  int32_t left = 0, right = 0;
  friend bool operator==(Pair, Pair) = default;
};

// Open addressing in a table at most half full. Values are trivially copyable; pointers hold until the next insert.
template <class Value>
class PairMap {
 public:
  explicit PairMap(size_t expected = 0) { rebuild(expected); }

  const Value* find(Pair pair) const {
    const uint64_t key = key_of(pair);
    for (size_t at = place(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at].value;
      if (slots_[at].key == kFree) return nullptr;
    }
  }

  // The value of `pair`, made from `fresh` where there is none yet.
  Value& insert(Pair pair, const Value& fresh) {
    if (2 * (count_ + 1) > slots_.size()) rebuild(2 * count_ + 2);
    const uint64_t key = key_of(pair);
    size_t at = place(key);
    while (slots_[at].key != key && slots_[at].key != kFree) at = (at + 1) & mask_;
    if (slots_[at].key == kFree) {
      slots_[at] = {key, fresh};
      ++count_;
    }
    return slots_[at].value;
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};  // no pair: ids are not negative
  struct Slot {
    uint64_t key = kFree;
    Value value{};
  };

  static uint64_t key_of(Pair pair) {
    return uint64_t{static_cast<uint32_t>(pair.left)} << 32 | static_cast<uint32_t>(pair.right);
  }
  size_t place(uint64_t key) const {
    key *= 0x9e3779b97f4a7c15u;
    return (key ^ key >> 32) & mask_;
  }

  void rebuild(size_t expected) {
    size_t size = 16;
    while (size < 2 * expected) size *= 2;
    std::vector<Slot> before(size);
    before.swap(slots_);
    mask_ = size - 1;
    for (const Slot& slot : before) {
      if (slot.key == kFree) continue;
      size_t at = place(slot.key);
      while (slots_[at].key != kFree) at = (at + 1) & mask_;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0, count_ = 0;
};

}  // namespace mh::detail
