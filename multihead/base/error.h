// The one exception of the library: a kind and a sentence.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace mh {

enum class ErrorKind { invalid_argument, unsupported, io, internal };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Throws Error{kind} with the formatted sentence: `op: what is wrong; what was expected; the shapes`.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> form, Args&&... args) {
  throw Error(kind, fmt::format(form, std::forward<Args>(args)...));
}

// Throws Error{invalid_argument} unless `holds`.
template <class... Args>
void check(bool holds, fmt::format_string<Args...> form, Args&&... args) {
  if (!holds) fail(ErrorKind::invalid_argument, form, std::forward<Args>(args)...);
}

}  // namespace mh
