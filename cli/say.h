// What people are told on stderr. Where it is full, closed or gone, nobody is told and the work goes on.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <string_view>

namespace mh::cli {

inline constexpr std::string_view kNoMemory = "multihead: there is not enough memory\n";

// Whether --quiet was given: notes and progress are dropped, errors are not.
bool& quiet();

// Writes and flushes the text; drops what the stream does not take.
void put(std::FILE* out, std::string_view text) noexcept;

// A line on stderr about a failure.
template <class... Args>
void complain(fmt::format_string<Args...> form, Args&&... args) {
  try {
    put(stderr, fmt::format(form, std::forward<Args>(args)...) + "\n");
  } catch (const std::bad_alloc&) {
    put(stderr, kNoMemory);
  }
}

// A line on stderr that nobody needs; not with --quiet.
template <class... Args>
void mention(fmt::format_string<Args...> form, Args&&... args) {
  if (!quiet()) complain(form, std::forward<Args>(args)...);
}

}  // namespace mh::cli
