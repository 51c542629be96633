// A hash of each text decides.
#include "multihead/tasks/data/hold_out.h"

#include <algorithm>

#include "multihead/base/error.h"

namespace mh::detail {

namespace {

// FNV-1a, and the mixing of MurmurHash3's end: texts that differ in their last byte lie far apart.
uint64_t text_key(std::string_view text) {
  uint64_t key = 0xCBF29CE484222325;
  for (const char c : text) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  key = (key ^ (key >> 33)) * 0xFF51AFD7ED558CCD;
  return key ^ (key >> 33);
}

}  // namespace

std::vector<bool> held_out(const std::vector<std::string_view>& texts, int64_t count, const std::string& name,
                           std::string_view what) {
  const auto size = static_cast<int64_t>(texts.size());
  check(count >= 1 && count <= size / 2, "{}: {} {} are to be held out; expected 1 to half of the {} there are", name,
        count, what, size);
  std::vector<uint64_t> keys;
  for (const std::string_view text : texts) keys.push_back(text_key(text));
  std::vector<uint64_t> sorted = keys;
  const auto last = sorted.begin() + (count - 1);
  std::nth_element(sorted.begin(), last, sorted.end());
  std::vector<bool> out;
  for (const uint64_t key : keys) out.push_back(key <= *last);
  const auto taken = std::count(out.begin(), out.end(), true);
  check(taken < size, "{}: nothing is left beside the {} {} held out, which have one source", name, taken, what);
  return out;
}

}  // namespace mh::detail
