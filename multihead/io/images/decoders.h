// The decoders behind read_image: each reads bytes of its own format.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "multihead/tensor/tensor.h"

namespace mh::detail {

using ImageBytes = std::span<const std::byte>;

// As decode_image.
Tensor decode_png(ImageBytes bytes, const std::string& name);
Tensor decode_jpeg(ImageBytes bytes, const std::string& name);

// Throws: io, naming the file, where a side is 0 or the limits are passed.
void check_image_size(int64_t height, int64_t width, const std::string& name);
// Throws: io, "NAME: the picture is damaged: WHY".
[[noreturn]] void refuse_image(const std::string& name, const std::string& why);

}  // namespace mh::detail
