// Python's pickles, read as a description: no object is built, no name is looked up, nothing is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mh::detail {

// One value of a pickle. Others are named by their number in Pickle::values.
struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,  // integer 0 or 1
    integer,
    real,  // whose value nothing here reads
    text,
    list,        // items
    tuple,       // items
    dict,        // items: key, value, key, value …
    global,      // module and text: a name of the program's that was allowed
    call,        // what function(arguments) would give; items: what was put into it by key, as in a dict
    persistent,  // items: the one that says what lies elsewhere
  };
  Kind kind = Kind::none;
  uint32_t function = 0, arguments = 0;  // of a call: a global, a tuple
  int64_t integer = 0;
  std::string_view text{}, module{};  // within the bytes that were read
  std::vector<uint32_t> items{};
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;
  size_t bytes = 0;  // how many it took, its end mark among them

  const PickleValue& operator[](uint32_t number) const { return values[number]; }
};

struct PickleOptions {
  // Which names of functions and classes may stand in it.
  std::function<bool(std::string_view module, std::string_view name)> allowed;
};

// Reads from the start of `bytes` to the end of one pickle: the operations of protocols 2 to 5 that plain values and
// calls of allowed names are made of. The values take at most a fixed multiple of the bytes that were read. The texts
// point into `bytes`. Throws: io where the bytes are no such pickle, have an operation that is not known or name what
// is not allowed (by name); `file` stands in the sentences.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& file, const PickleOptions& options);

}  // namespace mh::detail
