// A stack, a memo and some thirty operations.
#include "multihead/io/torch/pickle_machine.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/torch/little_endian.h"

namespace mh::detail {

namespace {

using Kind = PickleValue::Kind;

// A model of 100,000 tensors has two million.
constexpr size_t kMostValues = size_t{1} << 22;

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& file, const PickleOptions& options)
      : bytes_(bytes), file_(file), options_(options) {}

  Pickle run() {
    while (true) {
      const auto code = number<uint8_t>();
      if (code == '.') break;
      if (!plain(code) && !collection(code) && !memory(code) && !program(code))
        refuse("holds the operation {:#04x} at byte {}, which tensors do not need", code, at_ - 1);
    }
    require(stack_.size() == 1 && marks_.empty(), "ends with {} values; expected one", stack_.size());
    out_.root = stack_.back();
    out_.bytes = at_;
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> form, Args&&... args) const {
    fail(ErrorKind::io, "{}: its pickle {}", printable_path(file_), fmt::format(form, std::forward<Args>(args)...));
  }
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> form, Args&&... args) const {
    if (!holds) refuse(form, std::forward<Args>(args)...);
  }

  // Values that stand in the bytes themselves. Each answers whether the operation is its own.
  bool plain(uint8_t code) {
    switch (code) {
      case 0x80: return number<uint8_t>(), true;   // PROTO
      case 0x95: return number<uint64_t>(), true;  // FRAME
      case 'N': return push(Kind::none), true;
      case 0x88: return integer(1, Kind::boolean), true;       // NEWTRUE
      case 0x89: return integer(0, Kind::boolean), true;       // NEWFALSE
      case 'J': return integer(number<int32_t>()), true;       // BININT
      case 'K': return integer(number<uint8_t>()), true;       // BININT1
      case 'M': return integer(number<uint16_t>()), true;      // BININT2
      case 0x8a: return long_integer(), true;                  // LONG1
      case 'G': return characters(8), push(Kind::real), true;  // BINFLOAT
      case 'U':                                                // SHORT_BINSTRING, of Python 2
      case 0x8c: return text(number<uint8_t>()), true;         // SHORT_BINUNICODE
      case 'T':                                                // BINSTRING
      case 'X': return text(number<uint32_t>()), true;         // BINUNICODE
      case 0x8d: return text(number<uint64_t>()), true;        // BINUNICODE8
      default: return false;
    }
  }

  bool collection(uint8_t code) {
    switch (code) {
      case ')': return push(Kind::tuple), true;  // EMPTY_TUPLE
      case ']': return push(Kind::list), true;
      case '}': return push(Kind::dict), true;
      case '(': return mark(), true;
      case 't': return gather(from_mark()), true;  // TUPLE
      case 0x85: return gather(last(1)), true;     // TUPLE1
      case 0x86: return gather(last(2)), true;
      case 0x87: return gather(last(3)), true;
      case 'a': return append(last(1)), true;
      case 'e': return append(from_mark()), true;     // APPENDS
      case 's': return set_items(last(2)), true;      // SETITEM
      case 'u': return set_items(from_mark()), true;  // SETITEMS
      case '0': return last(1), true;                 // POP
      default: return false;
    }
  }

  bool memory(uint8_t code) {
    switch (code) {
      case 'q': return put(number<uint8_t>()), true;   // BINPUT
      case 'r': return put(number<uint32_t>()), true;  // LONG_BINPUT
      case 0x94: return put(memo_.size()), true;       // MEMOIZE
      case 'h': return get(number<uint8_t>()), true;   // BINGET
      case 'j': return get(number<uint32_t>()), true;  // LONG_BINGET
      default: return false;
    }
  }

  // What would run something, were this Python.
  bool program(uint8_t code) {
    switch (code) {
      case 'c': {  // GLOBAL
        const std::string_view module = line();
        return global(module, line()), true;
      }
      case 0x93: {  // STACK_GLOBAL
        const std::vector<uint32_t> names = last(2);
        const PickleValue &module = out_.values[names[0]], &name = out_.values[names[1]];
        require(module.kind == Kind::text && name.kind == Kind::text, "names a global by what is not text");
        return global(module.text, name.text), true;
      }
      case 'Q': {  // BINPERSID
        const std::vector<uint32_t> id = last(1);
        push(Kind::persistent).items = id;
        return true;
      }
      case 'R': return call(last(2)), true;  // REDUCE
      case 'b': {                            // BUILD: attributes of an object, which no tensor has
        last(1);
        const Kind kind = out_.values[top()].kind;
        require(kind == Kind::dict || kind == Kind::call, "gives attributes to what has none");
        return true;
      }
      default: return false;
    }
  }

  template <class T>
  T number() {
    const std::optional<T> value = little_endian_at<T>(bytes_, at_);
    require(value.has_value(), "ends within an operation, at byte {}", at_);
    at_ += sizeof(T);
    return *value;
  }
  std::string_view characters(uint64_t count) {
    require(count <= bytes_.size() - at_, "has a text of {} bytes where {} are left", count, bytes_.size() - at_);
    at_ += count;
    return {reinterpret_cast<const char*>(bytes_.data()) + at_ - count, static_cast<size_t>(count)};
  }
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
    const size_t end = rest.find('\n');
    require(end != rest.npos, "ends within a name, at byte {}", at_);
    at_ += end + 1;
    return rest.substr(0, end);
  }

  PickleValue& push(Kind kind) {
    require(out_.values.size() < kMostValues, "has more than {} values", kMostValues);
    stack_.push_back(static_cast<uint32_t>(out_.values.size()));
    out_.values.emplace_back().kind = kind;
    return out_.values.back();
  }
  void integer(int64_t value, Kind kind = Kind::integer) { push(kind).integer = value; }
  void long_integer() {
    const std::string_view digits = characters(number<uint8_t>());
    require(digits.size() <= sizeof(int64_t), "has a whole number of {} bytes; expected at most 8", digits.size());
    uint64_t value = !digits.empty() && (static_cast<uint8_t>(digits.back()) & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t n = digits.size(); n-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[n]);
    integer(static_cast<int64_t>(value));
  }
  void text(uint64_t count) {
    const std::string_view value = characters(count);
    push(Kind::text).text = value;
  }
  void global(std::string_view module, std::string_view name) {
    if (!options_.allowed(module, name))
      refuse("names {}; expected nothing but tensors: this is not run and not read",
             printable(std::string(module) + "." + std::string(name)));
    PickleValue& value = push(Kind::global);
    value.module = module;
    value.text = name;
  }
  void call(const std::vector<uint32_t>& pair) {
    require(out_.values[pair[0]].kind == Kind::global && out_.values[pair[1]].kind == Kind::tuple,
            "calls what is no name");
    PickleValue& value = push(Kind::call);
    value.function = pair[0];
    value.arguments = pair[1];
  }

  // Takes values off the stack, those above the last mark only.
  std::vector<uint32_t> take(size_t from) {
    std::vector<uint32_t> out(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    stack_.resize(from);
    return out;
  }
  std::vector<uint32_t> last(size_t count) {
    require(stack_.size() >= floor() + count, "takes a value that is not there, at byte {}", at_ - 1);
    return take(stack_.size() - count);
  }
  std::vector<uint32_t> from_mark() {
    require(!marks_.empty(), "has no mark where one is needed, at byte {}", at_ - 1);
    const size_t from = marks_.back();
    marks_.pop_back();
    return take(from);
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t top() const {
    require(stack_.size() > floor(), "has no value where one is needed, at byte {}", at_ - 1);
    return stack_.back();
  }

  void gather(std::vector<uint32_t> items) { push(Kind::tuple).items = std::move(items); }
  void append(const std::vector<uint32_t>& items) {
    PickleValue& list = out_.values[top()];
    require(list.kind == Kind::list, "appends to what is not a list");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<uint32_t>& items) {
    PickleValue& dict = out_.values[top()];
    require((dict.kind == Kind::dict || dict.kind == Kind::call) && items.size() % 2 == 0,
            "sets items of what is no dictionary");
    dict.items.insert(dict.items.end(), items.begin(), items.end());
  }
  void mark() {
    require(marks_.size() < kMostValues, "has more than {} marks", kMostValues);
    marks_.push_back(stack_.size());
  }
  void put(uint64_t place) {
    memo_[place] = top();
    require(memo_.size() <= kMostValues, "keeps more than {} values", kMostValues);
  }
  void get(uint64_t place) {
    const auto found = memo_.find(place);
    require(found != memo_.end(), "recalls value {}, which it did not keep", place);
    require(stack_.size() < kMostValues, "has more than {} values", kMostValues);
    stack_.push_back(found->second);
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  const PickleOptions& options_;
  size_t at_ = 0;
  Pickle out_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& file, const PickleOptions& options) {
  return Machine(bytes, file, options).run();
}

}  // namespace mh::detail
