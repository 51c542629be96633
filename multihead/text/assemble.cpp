// Texts cut to length, and put together with special tokens as a template says.
#include "multihead/text/assemble.h"

#include <algorithm>

#include "multihead/base/error.h"

namespace mh::detail {
namespace {

// Tokens of a sequence, from `begin` to before `end`.
struct Window {
  size_t begin, end;
};

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

// How many tokens of each text a window holds.
std::vector<size_t> kept(const std::vector<size_t>& sizes, size_t room, Truncate truncate) {
  if (sizes.size() == 1) {
    check(truncate != Truncate::only_second, "encode: truncate is only_second, but there is one text; expected two");
    return {std::min(sizes[0], room)};
  }
  const size_t total = sizes[0] + sizes[1];
  if (total <= room) return sizes;
  if (truncate == Truncate::longest_first) {
    const auto [first, second] = longest_first(sizes[0], sizes[1], room);
    return {first, second};
  }
  const size_t which = truncate == Truncate::only_first ? 0 : 1;
  std::vector<size_t> out = sizes;
  check(sizes[which] > total - room,
        "encode: the {} text has {} tokens, and {} are to go; expected it to be longer than that",
        which == 0 ? "first" : "second", sizes[which], total - room);
  out[which] -= total - room;
  return out;
}

std::vector<Window> windows_of(size_t size, size_t room, size_t stride, Windows wanted) {
  if (size <= room) return {{0, size}};
  if (wanted == Windows::first) return {{0, room}};
  check(stride < room, "encode: the stride is {}; expected less than the {} tokens that a window holds of the text",
        stride, room);
  std::vector<Window> out;
  for (size_t begin = 0;; begin += room - stride) {
    const size_t end = std::min(begin + room, size);
    out.push_back({begin, end});
    if (end == size) return out;
  }
}

class Assembler {
 public:
  Assembler(const Pipeline& steps, const std::vector<std::string_view>& texts, const EncodeOptions& options)
      : steps_(steps),
        texts_(texts),
        options_(options),
        parts_(texts.size() == 1 ? steps.templates.single : steps.templates.pair) {
    for (const std::string_view text : texts) sequences_.push_back(steps.encode(text, options.find_special));
  }

  std::vector<Encoded> windows(Windows wanted) const {
    std::vector<std::vector<Window>> each;
    std::vector<size_t> sizes, room;
    for (const Sequence& sequence : sequences_) sizes.push_back(sequence.ids.size());
    room = options_.max_length > 0 ? kept(sizes, tokens_of_texts(), options_.truncate) : sizes;
    for (size_t i = 0; i < sizes.size(); ++i)
      each.push_back(windows_of(sizes[i], room[i], static_cast<size_t>(options_.stride), wanted));
    if (each.size() == 1) each.push_back({{0, 0}});
    std::vector<Encoded> out{together(each[0][0], each[1][0])};
    for (size_t i = 1; i < each[0].size(); ++i)
      for (const Window& second : each[1]) out.push_back(together(each[0][i], second));
    for (size_t j = 1; j < each[1].size(); ++j) out.push_back(together(each[0][0], each[1][j]));
    return out;
  }

 private:
  size_t tokens_of_texts() const {
    const int64_t special = options_.add_special ? count_special(parts_) : 0;
    check(options_.max_length >= special, "encode: max_length is {}, less than the {} special tokens alone",
          options_.max_length, special);
    return static_cast<size_t>(options_.max_length - special);
  }

  Encoded together(Window first, Window second) const {
    Encoded out;
    for (const TemplatePart& part : parts_) {
      if (part.kind == TemplatePart::Kind::special) {
        if (!options_.add_special) continue;
        out.ids.insert(out.ids.end(), part.ids.begin(), part.ids.end());
        out.offsets.resize(out.ids.size());
        out.words.resize(out.ids.size(), -1);
        out.sequences.resize(out.ids.size(), int8_t{-1});
      } else {
        const bool is_first = part.kind == TemplatePart::Kind::first;
        append(is_first ? 0 : 1, is_first ? first : second, out);
      }
      out.types.resize(out.ids.size(), part.type);
    }
    return out;
  }

  void append(size_t which, Window window, Encoded& out) const {
    const Sequence& from = sequences_[which];
    const auto begin = static_cast<std::ptrdiff_t>(window.begin), end = static_cast<std::ptrdiff_t>(window.end);
    out.ids.insert(out.ids.end(), from.ids.begin() + begin, from.ids.begin() + end);
    out.words.insert(out.words.end(), from.words.begin() + begin, from.words.begin() + end);
    out.sequences.resize(out.ids.size(), static_cast<int8_t>(which));
    const size_t before = out.offsets.size();
    out.offsets.insert(out.offsets.end(), from.offsets.begin() + begin, from.offsets.begin() + end);
    for (const TrimOffsets& trim : steps_.templates.trims)
      for (size_t i = before; i < out.offsets.size(); ++i) {
        Margins around = margins_of(from, window.begin + (i - before), texts_[which]);
        const bool at_start = i == before || out.offsets[i].begin == 0;
        if (at_start && trim.prefix_space && around.left == 1) around.left = 0;
        if (around.left > 0 || around.right > 0)
          out.offsets[i] = without_margins(out.offsets[i], around, texts_[which]);
      }
  }

  // Of an added token those of the text it was found as, white space that it took along included.
  Margins margins_of(const Sequence& from, size_t at, std::string_view text) const {
    if (!from.added[at]) return steps_.margins[static_cast<size_t>(from.ids[at])];
    const TextSpan span = from.offsets[at];
    return find_margins(text.substr(span.begin, span.end - span.begin));
  }

  const Pipeline& steps_;
  const std::vector<std::string_view>& texts_;
  const EncodeOptions& options_;
  const std::vector<TemplatePart>& parts_;
  std::vector<Sequence> sequences_;
};

}  // namespace

std::vector<Encoded> assemble(const Pipeline& steps, const std::vector<std::string_view>& texts,
                              const EncodeOptions& options, Windows windows) {
  check(options.max_length >= 0 && options.stride >= 0, "encode: max_length is {} and stride {}; expected 0 or more",
        options.max_length, options.stride);
  return Assembler(steps, texts, options).windows(windows);
}

}  // namespace mh::detail
