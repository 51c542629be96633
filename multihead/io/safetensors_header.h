// The header of a safetensors file: read with every rule checked, and written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh::detail {

// As the format's reference implementation: a longer header is refused.
inline constexpr int64_t kLongestHeader = 100'000'000;

// One tensor of the file: its bytes are [begin, end) of what follows the header.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes, which they cover without hole or overlap
  std::map<std::string, std::string> metadata;
};

// `data_bytes` follow the header in the file; `file` stands in the sentences. Throws: io, unsupported.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes, const std::string& file);

// JSON, padded with spaces so that the data behind it and its length starts at a multiple of 64 bytes.
// Throws: invalid_argument where a name or text is not UTF-8, a tensor is named __metadata__, or all is too long.
std::string write_safetensors_header(const SafetensorsHeader& header);

}  // namespace mh::detail
