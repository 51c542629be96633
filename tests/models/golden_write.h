// Folders of a test's own, made of a golden one.
#pragma once

#include <fstream>
#include <string>

#include "multihead/io/safetensors.h"
#include "multihead/io/safetensors_bytes.h"
#include "tests/harness/temporary_folder.h"

namespace mh::test {

// write_safetensors without waiting for the disk.
inline void put_weights(const std::string& path, const Safetensors& file) {
  std::ofstream out(path, std::ios::binary);
  const detail::SafetensorsBytes bytes = detail::serialise(file);
  for (const auto part : bytes.parts())
    out.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
  EXPECT_TRUE(out.flush()) << path;
}

inline bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.view().data, y.view().data, static_cast<size_t>(x.count() * size_of(x.dtype()))) == 0;
}

}  // namespace mh::test
