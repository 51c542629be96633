// Safetensors files: named tensors, and text beside them.
//
// A file is the length of a header (8 bytes, little-endian), the header (JSON: for each name a dtype, a shape and where
// its bytes lie), and the bytes. Reading checks every rule of the format, so that a file made to harm is refused with a
// sentence: sizes that overflow, offsets that overlap or leave holes, names that stand twice, bools that are neither.
//
// A file that multihead writes carries a hash (XXH3, 128 bits) of all its other bytes, in the metadata under
// "multihead.xxh3". It finds what disks, copies and crashes do: a changed byte, a missing end. It is no signature:
// whoever alters a file on purpose can alter the hash too. A program that rewrites such a file and keeps its metadata
// has to drop that key. Files without it, those of other programs, are read as they are.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "multihead/tensor/named_tensors.h"

namespace mh {

struct Safetensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;  // without the hash
  bool hashed = false;  // read: the file carries its hash. Not looked at when writing: every file gets one
};

struct SafetensorsOptions {
  // Compare the file with the hash it carries. That touches every byte once: about as long as copying the file (15 MB
  // from the page cache: 2 ms), and a file larger than memory comes from the disk in full. Without it, pages are read
  // only when their tensors are.
  bool verify = true;
};

// The file is mapped, not read: tensors point into it (those that are not aligned to their elements are copied) and
// keep it mapped. They may be written to: a write makes a page of its own, the file never changes. Replacing or
// deleting the file is safe meanwhile; shortening it in place is not. Throws: io where the file cannot be read, breaks
// a rule or differs from its hash; unsupported for the types multihead has not (I16, U32, F8_E4M3, …) and for more than
// kMaxRank axes. Each names the file, and the tensor where it is one.
Safetensors read_safetensors(const std::string& path, const SafetensorsOptions& options = {});

// The same of bytes in memory, the hash checked; every tensor is a copy. `name` stands in the sentences.
Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

// Durably: the old file stays until the new one is safe on the disk (durable_file.h). The same tensors give the same
// bytes: wider elements first, so that all lie aligned, then by name. Strided tensors are written densely. The file's
// hash is added to the metadata.
// Throws: invalid_argument for an empty tensor or text that is not UTF-8, before anything is written; io.
void write_safetensors(const std::string& path, const Safetensors& file);

}  // namespace mh
