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
  bool transposed = false;       // matrices are (in, out)
  int part = 0, parts = 1;       // of so many equal parts below each other (after transposing), this one
  int64_t heads = 0;             // above 0: the parts of each head stand together, (heads, parts, width, …)
  std::vector<int64_t> shape{};  // of the file's tensor, where its elements have another shape there
  bool exact = false;            // the names are whole: no ".weight" or ".bias" follows
  bool one_row = false;          // a vector that lies in the file as a matrix of one row
};

// One module's tensors: `file`.weight ↔ `ours`.weight, .bias likewise. "{}" stands for a layer's number.
struct TensorName {
  std::string file, ours;
  TensorLayout layout{};
  bool top = false;  // not below the body's prefix; so are all of ours below "head"
};

// The whole table of a model. Of several rows for one of ours the first is written.
class TensorNames {
 public:
  // `prefixes`: what a file may put before each name ("bert."); the first is written. `ignored`: names, with "{}" for
  // numbers and a leading "*" for anything, that no model needs.
  TensorNames(std::vector<TensorName> rows, std::vector<std::string> prefixes, std::vector<std::string> ignored);

  struct Loaded {
    NamedTensors ours;                 // views of the file's tensors where the layout allows it
    std::vector<std::string> unknown;  // of the file, neither in a row nor ignored
  };
  // Throws: invalid_argument, naming the tensor, where a layout does not fit its shape, or two that differ are one
  // parameter.
  Loaded load(const NamedTensors& file) const;

  // What a file calls our parameter; our own name where no row has it. `prefixed`: the body's have the prefix.
  std::string file_name(const std::string& ours, bool prefixed) const;
  // A copy of a file's tensor with our values in it; what no parameter lies in keeps its bits.
  Tensor updated(const std::string& name, const Tensor& tensor, const NamedTensors& ours) const;
  // The file's tensors for our parameters. Throws: internal where a parameter has no row.
  NamedTensors store(const NamedTensors& ours, bool prefixed) const;

 private:
  struct Place {
    std::string ours;
    const TensorName* row;
  };
  std::vector<Place> places(std::string_view name) const;
  bool is_ignored(std::string_view name) const;
  std::vector<TensorName> rows_;
  std::vector<std::string> prefixes_, ignored_;
};

}  // namespace mh
