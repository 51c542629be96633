// Pictures in files: PNG, JPEG and PPM to u8 tensors of red, green and blue, and PNG written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "multihead/tensor/tensor.h"

namespace mh {

// What a picture may have; checked before anything is allocated for it.
inline constexpr int64_t kMostImageSide = 1 << 16, kMostImagePixels = int64_t{1} << 26;

// u8 (height, width, 3) of a PNG, JPEG or PPM (P5, P6) file, told by its first bytes. Grey is repeated, a palette
// looked up, 16 bits cut to the higher 8, and transparency dropped: the colours behind it count, as Pillow's
// convert("RGB") has it. Colours are taken as they stand: no gamma, profile or rotation is applied. Throws: io, naming
// the file, where it cannot be read, is none of the three, is damaged or ends early, or is above the limits;
// unsupported for a JPEG of four inks.
Tensor read_image(const std::string& path);
// The same of bytes in memory; `name` stands in the sentences.
Tensor decode_image(std::span<const std::byte> bytes, const std::string& name);

// The bytes of a PNG file of u8 (height, width, 3), or (height, width, 1) for grey. Throws: invalid_argument for
// another shape, or a size above the limits.
std::string encode_png(const Tensor& image);

}  // namespace mh
