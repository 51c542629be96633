// Any bytes as a pattern and a text, with a line feed between them: refused with an Error, or matches that lie in order
// in the text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/text/pattern/pattern.h"
#include "multihead/text/unicode/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t cut = all.find('\n');
  if (cut == std::string_view::npos) return 0;
  const std::string text = mh::whole_utf8(all.substr(cut + 1).substr(0, 200));
  try {
    const mh::detail::Pattern pattern(mh::whole_utf8(all.substr(0, cut)), "fuzz");
    size_t done = 0;
    pattern.each_match(text, [&](size_t begin, size_t end) {
      if (begin < done || end <= begin || end > text.size()) std::abort();
      done = end;
    });
  } catch (const mh::Error&) {
    return 0;
  }
  return 0;
}
