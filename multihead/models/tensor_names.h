// Between the names and layouts of tensors in other programs' files and those of our parameters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tensor/named_tensors.h"

namespace mh {

// How a parameter lies in the file's tensor.
struct TensorLayout {
  bool transposed = false;      // matrices are (in, out)
  int part = 0, parts = 1;      // of so many parts below each other (after transposing), the part of this number
  int64_t heads = 0;            // above 0: parts alternate by head: rows (heads, parts, width)
  bool flattened = false;       // leading axes of 1 dropped and trailing ones joined until the shapes agree
  bool exact = false;           // the name is the whole name: no ".weight" or ".bias" follows
};

// One module's tensors: `file`.weight ↔ `ours`.weight, .bias likewise. "{}" stands for a layer's number.
struct TensorName {
  std::string file, ours;
  TensorLayout layout{};
};

// The whole table of a model. Rows are tried in order.
class TensorNames {
 public:
  // `prefixes`: what a file may put before each name ("bert."). `ignored`: names, with "{}" for numbers and a leading
  // "*" for anything, that no model needs.
  TensorNames(std::vector<TensorName> rows, std::vector<std::string> prefixes, std::vector<std::string> ignored);

  struct Loaded {
    NamedTensors ours;                           // views of the file's tensors where the layout allows it
    std::map<std::string, std::string> sources;  // by our name: the file's
    std::vector<std::string> unknown;            // of the file, neither in a row nor ignored
  };
  // Throws: invalid_argument, naming the tensor, where a layout does not fit its shape, or two tensors are one
  // parameter.
  Loaded load(const NamedTensors& file) const;

  // What a file calls our parameter, without a prefix; our own name where no row has it.
  std::string file_name(const std::string& ours) const;
  // The file's tensors of our parameters, contiguous: `prefix` goes before names that are not a head's. Several
  // parameters of one tensor are joined. Throws: internal where a row lacks a part.
  NamedTensors store(const NamedTensors& ours, const std::string& prefix) const;

 private:
  std::vector<TensorName> rows_;
  std::vector<std::string> prefixes_, ignored_;
};

}  // namespace mh
