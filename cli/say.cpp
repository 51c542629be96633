// Writing that cannot fail.
#include "cli/say.h"

namespace mh::cli {

bool& quiet() {
  static bool wanted = false;
  return wanted;
}

void put(std::FILE* out, std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

}  // namespace mh::cli
