// Small pictures whose label can be seen: the half that is bright.
#pragma once

#include <filesystem>
#include <string>

#include "multihead/base/random.h"
#include "multihead/io/images/image_file.h"
#include "tests/harness/temporary_folder.h"

namespace mh {

// u8 (8, 8, 3): noise below 100, and in the upper or the lower half above 155.
inline Tensor half_bright(bool upper, uint64_t number) {
  Random random(3, number);
  const Tensor out = empty({8, 8, 3}, DType::u8);
  for (int64_t n = 0; n < out.count(); ++n)
    out.data<uint8_t>()[n] = static_cast<uint8_t>(random.below(100) + ((n < out.count() / 2) == upper ? 155 : 0));
  return out;
}

// FOLDER/upper/….png and FOLDER/lower/….png, so many of each.
inline void write_pictures(const std::string& folder, int each, uint64_t seed = 0) {
  for (const std::string label : {"upper", "lower"}) {
    std::filesystem::create_directories(folder + "/" + label);
    for (int n = 0; n < each; ++n)
      put_text(folder + "/" + label + "/" + std::to_string(n) + ".png",
               encode_png(half_bright(label == "upper", seed + 2 * static_cast<uint64_t>(n) + (label == "upper"))));
  }
}

}  // namespace mh
