// The cutting of text into words by one table of character classes.
#include "multihead/text/words.h"

#include <unicode/utf8.h>

#include <cstdint>
#include <vector>

#include "multihead/text/pattern/code_ranges.h"

namespace mh::detail {
namespace {

enum class Class : uint8_t { other, letter, number, space };

// One byte for each code point up to the last that is not `other`: 200 KiB, of which a text touches its own scripts'
// part.
class Classes {
 public:
  Classes() {
    fill(property_ranges("L").value(), Class::letter);
    fill(property_ranges("N").value(), Class::number);
    fill(white_space_ranges(), Class::space);
  }

  Class operator[](UChar32 c) const {
    return c >= 0 && static_cast<size_t>(c) < table_.size() ? table_[static_cast<size_t>(c)] : Class::other;
  }

 private:
  void fill(const CodeRanges& ranges, Class value) {
    if (table_.size() <= ranges.back().last) table_.resize(size_t{ranges.back().last} + 1, Class::other);
    for (const CodeRange& range : ranges)
      for (size_t c = range.first; c <= range.last; ++c) table_[c] = value;
  }

  std::vector<Class> table_;
};

const Classes& classes() {
  static const Classes table;
  return table;
}

class Reader {
 public:
  Reader(std::string_view text, const Classes& classes) : text_(text), classes_(classes) {}

  // The class of the character at `at`, which moves past it.
  Class next(size_t& at) const {
    const auto byte = static_cast<uint8_t>(text_[at]);
    if (byte < 0x80) {
      ++at;
      return classes_[byte];
    }
    UChar32 c = 0;
    U8_NEXT(text_.data(), at, text_.size(), c);
    return classes_[c];
  }

  // The end of the run of `wanted` that goes on at `at`.
  size_t run_end(size_t at, Class wanted) const {
    while (at < text_.size()) {
      size_t after = at;
      if (next(after) != wanted) break;
      at = after;
    }
    return at;
  }

  // The end of a run of white space; but a word that follows keeps the last character of a longer run for itself.
  size_t space_end(size_t begin, size_t at) const {
    size_t last = begin;
    while (at < text_.size()) {
      size_t after = at;
      if (next(after) != Class::space) return last == begin ? at : last;
      last = at;
      at = after;
    }
    return at;
  }

 private:
  std::string_view text_;
  const Classes& classes_;
};

size_t contraction(std::string_view text, size_t at) {
  if (text[at] != '\'') return 0;
  const std::string_view rest = text.substr(at + 1, 2);
  if (rest.empty()) return 0;
  if (rest[0] == 's' || rest[0] == 't' || rest[0] == 'm' || rest[0] == 'd') return 2;
  return rest == "re" || rest == "ve" || rest == "ll" ? 3 : 0;
}

}  // namespace

size_t word_end(std::string_view text, size_t begin) {
  if (const size_t length = contraction(text, begin)) return begin + length;
  const Reader reader(text, classes());
  size_t at = begin;
  const Class first = reader.next(at);
  if (first != Class::space) return reader.run_end(at, first);
  if (text[begin] == ' ' && at < text.size()) {
    size_t after = at;
    const Class second = reader.next(after);
    if (second != Class::space) return reader.run_end(after, second);
  }
  return reader.space_end(begin, at);
}

}  // namespace mh::detail
