// Any bytes as a file of torch.save: refused with a sentence, or tensors that can be read to their last element and
// take no more than the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/io/torch/torch_file.h"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mh::TorchFile file;
  try {
    file = mh::parse_torch_file(std::as_bytes(std::span(data, size)), "input");
  } catch (const mh::Error& error) {
    must(std::strpbrk(error.what(), "\n\r\x1b") == nullptr);
    return 0;
  }
  size_t total = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const mh::Tensor dense = tensor.clone();
    total += static_cast<size_t>(dense.count() * size_of(dense.dtype()));
  }
  must(total <= size);
  for (const auto& [name, other] : file.tied) must(file.tensors.count(name) == 0 && file.tensors.count(other) == 1);
  return 0;
}
