// Files that torch.save wrote of a model's state: named tensors, read without running what a pickle may ask for.
//
// Both forms are read: the zip archive of PyTorch 1.6 and later, and the stream of pickles before it. Every size is
// checked against the bytes that are there, and no value is made that the file does not hold: the tensors together take
// no more than its bytes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "multihead/io/file_bytes.h"
#include "multihead/tensor/named_tensors.h"

namespace mh {

struct TorchFile {
  NamedTensors tensors;
  // Further names of tensors that share all of another's memory, as tied weights do: the name that came first in the
  // file, under which it stands in `tensors`.
  std::map<std::string, std::string> tied;
  std::vector<std::string> left_out;  // names of values that are no tensors
};

// A dictionary of tensors by name. The file is mapped: dense tensors that are aligned to their elements point into it
// and keep it mapped. Throws: io where the file cannot be read, breaks a rule of its form, claims more than it holds,
// or asks to call anything but what rebuilds a tensor (by name); unsupported for element types multihead has not and
// for more than kMaxRank axes.
TorchFile read_torch_file(const std::string& path);

// The same of bytes in memory, which are copied. `name` stands in the sentences.
TorchFile parse_torch_file(std::span<const std::byte> bytes, const std::string& name);

}  // namespace mh
