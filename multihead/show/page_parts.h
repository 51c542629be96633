// The page's markup, style and scripts, put into the program when it is built.
#pragma once

#include <cstddef>
#include <string_view>

namespace mh::detail {

inline constexpr size_t kPageScriptCount = 8;
// Nothing may be loaded, whatever a page holds.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'";
extern const std::string_view kPageBody, kPageStyle, kExplainBody, kExplainStyle, kExplainScript;
extern const std::string_view kPageScripts[kPageScriptCount];  // one behind the other they are one script

}  // namespace mh::detail
