// Any bytes: the safetensors reader refuses them with a sentence, or gives tensors that can be read, written and read
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "multihead/io/safetensors.h"
#include "multihead/io/safetensors_bytes.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::span<const std::byte> bytes_of(const mh::Tensor& x) {
  return {static_cast<const std::byte*>(x.view().data), static_cast<size_t>(x.count() * size_of(x.dtype()))};
}

void require_same(const mh::Safetensors& a, const mh::Safetensors& b) {
  require(a.metadata == b.metadata && a.tensors.size() == b.tensors.size());
  for (const auto& [name, x] : a.tensors) {
    const mh::Tensor& y = b.tensors.at(name);
    require(x.dtype() == y.dtype() && x.shape() == y.shape());
    require(std::memcmp(bytes_of(x).data(), bytes_of(y).data(), bytes_of(x).size()) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mh::Safetensors file;
  try {
    file = mh::parse_safetensors(std::as_bytes(std::span(data, size)), "input");
  } catch (const mh::Error& error) {
    require(std::strpbrk(error.what(), "\n\r\x1b") == nullptr);
    return 0;
  }
  std::string again;
  const mh::detail::SafetensorsBytes written = mh::detail::serialise(file);
  for (const std::span<const std::byte> part : written.parts())
    again.append(reinterpret_cast<const char*>(part.data()), part.size());
  require_same(file, mh::parse_safetensors(std::as_bytes(std::span(again)), "again"));
  return 0;
}
