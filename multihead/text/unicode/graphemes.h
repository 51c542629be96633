// Characters that stand together.
#pragma once

#include <cstddef>
#include <string_view>

namespace mh::detail {

// The end of the cluster (UAX 29) that begins at `at` < text.size(). Exact for clusters of fewer than six bytes; a
// longer one may end earlier, but not below six. `text` is UTF-8.
size_t grapheme_end(std::string_view text, size_t at);

}  // namespace mh::detail
