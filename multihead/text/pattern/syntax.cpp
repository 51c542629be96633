// The reading of a pattern.
#include "multihead/text/pattern/syntax.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/read/read_parts.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

using NodeKind = PatternNode::Kind;
using Mode = PatternNode::Mode;

constexpr size_t kLongest = 1 << 14;  // bytes of a pattern
constexpr int kDeepest = 50;          // groups and sets in one another
constexpr uint32_t kMostTimes = 1000;
constexpr uint32_t kLongS = 0x17f, kKelvin = 0x212a;  // beside ASCII's own, they differ from s and k in case alone

bool is_letter(uint32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

class SyntaxReader {
 public:
  SyntaxReader(std::string_view source, const std::string& where) : source_(source), where_(where) {}

  PatternNode whole() {
    PatternNode out = alternatives();
    wrong_if(!done(), "a ) closes nothing");
    return out;
  }

 private:
  bool done() const { return at_ == source_.size(); }
  char peek() const { return done() ? '\0' : source_[at_]; }
  bool take(std::string_view what) {
    if (!source_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  uint32_t next() {
    wrong_if(done(), "it ends too early");
    return next_character(source_, at_);
  }

  void wrong_if(bool wrong, std::string_view what) const {
    check(!wrong, "{}: {} is not a pattern: {}", where_, in_quotes(source_), what);
  }
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::unsupported, "{}: {} in the pattern {} is not supported", where_, in_quotes(what),
         in_quotes(source_));
  }

  PatternNode alternatives() {
    wrong_if(++depth_ > kDeepest, "it has too many groups in one another");
    PatternNode out{.kind = NodeKind::alternatives};
    do out.children.push_back(sequence());
    while (take("|"));
    --depth_;
    return out.children.size() == 1 ? std::move(out.children[0]) : out;
  }

  PatternNode sequence() {
    PatternNode out{.kind = NodeKind::sequence};
    uint32_t before = 0;  // the literal letter before, in lower case
    while (!done() && peek() != '|' && peek() != ')') {
      const size_t begin = at_;
      const uint32_t letter =
          folded_ && is_letter(static_cast<uint8_t>(peek())) ? static_cast<uint32_t>(peek()) | 0x20 : 0;
      refuse_ligatures(before, letter, begin);
      before = letter;
      out.children.push_back(repeated(atom()));
    }
    return out;
  }

  // Pairs that without regard to case are one character, too: ß for ss, ﬁ for fi.
  void refuse_ligatures(uint32_t first, uint32_t second, size_t at) const {
    const bool joined = (first == 's' && (second == 's' || second == 't')) ||
                        (first == 'f' && (second == 'f' || second == 'i' || second == 'l'));
    if (joined) refuse(fmt::format("(?i:{})", source_.substr(at - 1, 2)));
  }

  PatternNode repeated(PatternNode body) {
    PatternNode out{.kind = NodeKind::repeat};
    const size_t begin = at_;
    if (take("?")) {
      out.min = 0;
    } else if (take("*")) {
      out.min = 0;
      out.max = kUnlimited;
    } else if (take("+")) {
      out.max = kUnlimited;
    } else if (!interval(out)) {
      return body;
    }
    const bool braces = source_[begin] == '{';
    if (braces && (peek() == '+' || (peek() == '?' && out.min == out.max)))
      refuse(source_.substr(begin, at_ + 1 - begin));
    if (take("?")) {
      out.mode = Mode::lazy;
    } else if (take("+")) {
      out.mode = Mode::possessive;
    }
    if (!done() && std::string_view("?*+").find(peek()) != std::string_view::npos)
      refuse(source_.substr(begin, at_ + 1 - begin));
    if (may_be_empty(body)) refuse("a repeated part that may be empty");
    out.children.push_back(std::move(body));
    return out;
  }

  // {m}, {m,}, {,n}, {m,n}
  bool interval(PatternNode& out) {
    if (peek() != '{') return false;
    const size_t begin = at_++;
    const auto number = [&]() -> int64_t {
      if (peek() < '0' || peek() > '9') return -1;
      int64_t value = 0;
      while (peek() >= '0' && peek() <= '9' && value <= kMostTimes) value = value * 10 + (source_[at_++] - '0');
      return value;
    };
    const int64_t low = number();
    int64_t high = low;
    if (take(",")) {
      high = number();
    } else if (low < 0) {
      refuse("{");
    }
    if (!take("}") || (low < 0 && high < 0)) refuse(source_.substr(begin, at_ + 1 - begin));
    wrong_if(low > kMostTimes || high > kMostTimes, "a part is repeated more than 1000 times");
    out.min = static_cast<uint32_t>(std::max<int64_t>(low, 0));
    out.max = high < 0 ? kUnlimited : static_cast<uint32_t>(high);
    wrong_if(out.min > out.max || out.max == 0, "{m,n} has no times");
    return true;
  }

  PatternNode atom() {
    if (take("(")) return group();
    if (take("[")) return {.kind = NodeKind::set, .set = fold(set())};
    if (take(".")) return {.kind = NodeKind::set, .set = complement({{'\n', '\n'}})};
    if (take("\\")) return {.kind = NodeKind::set, .set = fold(escape())};
    const char c = peek();
    if (c == '^' || c == '$' || c == '*' || c == '+' || c == '?' || c == '{') refuse(std::string_view(&c, 1));
    return {.kind = NodeKind::set, .set = fold({single(next())})};
  }

  static CodeRange single(uint32_t c) { return {c, c}; }

  PatternNode group() {
    PatternNode out{.kind = NodeKind::sequence};
    const bool folded = folded_;
    if (take("?=")) {
      out.kind = NodeKind::ahead;
    } else if (take("?!")) {
      out.kind = NodeKind::not_ahead;
    } else if (take("?>")) {
      out.kind = NodeKind::atomic;
    } else if (take("?i:")) {
      folded_ = true;
    } else if (!take("?:") && peek() == '?') {
      refuse("(" + std::string(source_.substr(at_, 3)));
    }
    out.children.push_back(alternatives());
    wrong_if(!take(")"), "a ( is not closed");
    folded_ = folded;
    return out;
  }

  // Without regard to case, where that is asked for.
  CodeRanges fold(CodeRanges set) const {
    if (!folded_) return set;
    CodeRanges more;
    for (const CodeRange& range : set) {
      for (uint32_t c = range.first; c <= std::min<uint32_t>(range.last, 0x7f); ++c) {
        if (!is_letter(c)) continue;
        more.push_back(single(c ^ 0x20));
        if ((c | 0x20) == 's') more.push_back(single(kLongS));
        if ((c | 0x20) == 'k') more.push_back(single(kKelvin));
      }
      if (range.last > 0x7f) refuse("a class or a letter beyond ASCII in (?i:)");
    }
    return unite(std::move(set), more);
  }

  CodeRanges escape() {
    const uint32_t c = next();
    switch (c) {
      case 's': return white_space_ranges();
      case 'S': return complement(white_space_ranges());
      case 'w': return word_ranges();
      case 'W': return complement(word_ranges());
      case 'd': return *property_ranges("Nd");
      case 'D': return complement(*property_ranges("Nd"));
      case 'p': return property(false);
      case 'P': return property(true);
      case 'r': return {single('\r')};
      case 'n': return {single('\n')};
      case 't': return {single('\t')};
      case 'f': return {single('\f')};
      case 'v': return {single('\v')};
      default: break;
    }
    if (is_letter(c) || (c >= '0' && c <= '9')) refuse(std::string("\\") + static_cast<char>(c));
    return {single(c)};
  }

  CodeRanges property(bool negated) {
    wrong_if(!take("{"), "\\p has no name in braces");
    if (take("^")) negated = !negated;
    const size_t end = source_.find('}', at_);
    wrong_if(end == std::string_view::npos, "\\p{ is not closed");
    const std::string_view name = source_.substr(at_, end - at_);
    const auto found = property_ranges(name);
    if (!found) refuse("\\p{" + std::string(name) + "}");
    at_ = end + 1;
    return negated ? complement(*found) : *found;
  }

  // Behind its [.
  CodeRanges set() {
    wrong_if(++depth_ > kDeepest, "it has too many sets in one another");
    const bool negated = take("^");
    CodeRanges whole, part;
    bool limited = false;
    const auto end_part = [&] {
      whole = limited ? intersect(whole, part) : part;
      part.clear();
    };
    for (bool first = true; first || peek() != ']'; first = false) {
      wrong_if(done(), "a [ is not closed");
      if (take("&&")) {
        end_part();
        limited = true;
      } else {
        part = unite(std::move(part), set_part());
      }
    }
    ++at_;
    end_part();
    --depth_;
    return negated ? complement(whole) : whole;
  }

  CodeRanges set_part() {
    if (source_.substr(at_).starts_with("[:")) refuse("[:");
    if (take("[")) return set();
    const bool escaped = take("\\");
    const CodeRanges low = escaped ? escape() : CodeRanges{single(next())};
    const bool range = peek() == '-' && at_ + 1 < source_.size() && source_[at_ + 1] != ']';
    if (!range) return low;
    const bool one = low.size() == 1 && low[0].first == low[0].last;
    if (!one || source_[at_ + 1] == '[') refuse("- behind a class");
    ++at_;
    const CodeRanges high = take("\\") ? escape() : CodeRanges{single(next())};
    wrong_if(high.size() != 1 || high[0].first != high[0].last || high[0].first < low[0].first, "a range has no end");
    return {{low[0].first, high[0].first}};
  }

  std::string_view source_;
  const std::string& where_;
  size_t at_ = 0;
  int depth_ = 0;
  bool folded_ = false;
};

}  // namespace

PatternNode parse_pattern(std::string_view source, const std::string& where) {
  check(!source.empty() && source.size() <= kLongest, "{}: a pattern has {} bytes; expected 1 to {}", where,
        source.size(), kLongest);
  return SyntaxReader(source, where).whole();
}

bool may_be_empty(const PatternNode& node) {
  const auto is_empty = [](const PatternNode& child) { return may_be_empty(child); };
  switch (node.kind) {
    case NodeKind::set: return false;
    case NodeKind::alternatives: return std::any_of(node.children.begin(), node.children.end(), is_empty);
    case NodeKind::repeat: return node.min == 0 || may_be_empty(node.children[0]);
    case NodeKind::ahead:
    case NodeKind::not_ahead: return true;
    default: return std::all_of(node.children.begin(), node.children.end(), is_empty);
  }
}

}  // namespace mh::detail
