// Between tensors and the bytes of a safetensors file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "multihead/io/file_bytes.h"
#include "multihead/io/safetensors.h"

namespace mh::detail {

// Tensors that point into `file` and keep it. Throws: as read_safetensors; `name` stands in the sentences.
Safetensors view_safetensors(const FileBytes& file, const std::string& name, const SafetensorsOptions& options = {});

// A file about to be written: the length and the header with the hash, and the tensors whose bytes follow.
struct SafetensorsBytes {
  std::string head;
  std::vector<Tensor> dense;

  // All of it, for as long as this lives.
  std::vector<std::span<const std::byte>> parts() const;
};

// Throws: invalid_argument, as write_safetensors.
SafetensorsBytes serialise(const Safetensors& file);

}  // namespace mh::detail
