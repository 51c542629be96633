// Texts and special tokens put together as a template says.
#include "multihead/text/assemble.h"

#include <algorithm>

#include "multihead/base/error.h"

namespace mh::detail {
namespace {

// How many tokens of each text stay where `room` tokens have place: the longer text is cut first.
std::pair<size_t, size_t> longest_first(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const size_t shorter = std::min(first, second);
  size_t few = shorter, many = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (few + many > room) {
    few = room / 2;
    many = few + room % 2;
  }
  return first > second ? std::pair(many, few) : std::pair(few, many);
}

}  // namespace

Encoded assemble(const std::vector<TemplatePart>& parts, std::vector<int32_t> first, std::vector<int32_t> second,
                 const EncodeOptions& options) {
  if (options.max_length > 0) {
    const int64_t room = options.max_length - (options.add_special ? count_special(parts) : 0);
    check(room >= 0, "encode_input: max_length is {}, less than the {} special tokens alone", options.max_length,
          count_special(parts));
    const auto [keep, keep_second] = longest_first(first.size(), second.size(), static_cast<size_t>(room));
    first.resize(keep);
    second.resize(keep_second);
  }
  Encoded out;
  for (const TemplatePart& part : parts) {
    const bool is_special = part.kind == TemplatePart::Kind::special;
    if (is_special && !options.add_special) continue;
    const std::vector<int32_t>& ids = is_special ? part.ids : part.kind == TemplatePart::Kind::first ? first : second;
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.resize(out.ids.size(), part.type);
  }
  return out;
}

}  // namespace mh::detail
