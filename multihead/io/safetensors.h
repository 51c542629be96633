// Safetensors files: named tensors, and text beside them.
//
// A file is the length of a header (8 bytes, little-endian), the header (JSON: for each name a dtype, a shape and where
// its bytes lie), and the bytes. Reading checks every rule of the format, so that a file made to harm is refused with a
// sentence: sizes that overflow, offsets that overlap or leave holes, names that stand twice, bools that are neither.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "multihead/tensor/named_tensors.h"

namespace mh {

struct Safetensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

// The file is mapped, not read: tensors point into it (those that are not aligned to their elements are copied) and
// keep it mapped. They may be written to: a write makes a page of its own, the file never changes. Replacing or
// deleting the file is safe meanwhile; shortening it in place is not. Throws: io where the file cannot be read or
// breaks a rule; unsupported for the types multihead has not (I16, U32, F8_E4M3, …) and for more than kMaxRank axes.
// Each names the file, and the tensor where it is one.
Safetensors read_safetensors(const std::string& path);

// The same of bytes in memory; every tensor is a copy. `name` stands in the sentences.
Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

// Durably: the old file stays until the new one is safe on the disk (durable_file.h). The same tensors give the same
// bytes: wider elements first, so that all lie aligned, then by name. Strided tensors are written densely.
// Throws: invalid_argument for an empty tensor or text that is not UTF-8, before anything is written; io.
void write_safetensors(const std::string& path, const Safetensors& file);

}  // namespace mh
