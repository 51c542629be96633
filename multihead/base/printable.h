// Text from elsewhere, made fit to stand in a sentence.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace mh {

// Formats in single quotes, with control characters and what is not UTF-8 as \xNN: a hostile name can neither break the
// line nor move the terminal's cursor. The text is made only where the sentence is.
struct Printable {
  std::string_view text;
  size_t longest;

  std::string quoted() const;
};

// At most 80 bytes, never half a character.
inline Printable printable(std::string_view name) { return {name, 80}; }
// All of it.
inline Printable printable_path(std::string_view path) { return {path, path.size()}; }

}  // namespace mh

template <>
struct fmt::formatter<mh::Printable> : fmt::formatter<std::string_view> {
  auto format(const mh::Printable& text, format_context& context) const {
    return fmt::formatter<std::string_view>::format(text.quoted(), context);
  }
};
