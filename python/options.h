// The keyword arguments of a call, turned into AttentionOptions.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "multihead/ops/attention/options.h"
#include "python/array.h"
#include "python/mask_object.h"

namespace mh::python {

// As they came; None where not given.
struct OptionArguments {
  nb::handle mask = Py_None, bias = Py_None, scale = Py_None, similarity = Py_None;
  nb::handle seed = Py_None, sink = Py_None, score_mix = Py_None;
  nb::handle cu_seqlens_q = Py_None, cu_seqlens_k = Py_None;
  double softcap = 0, dropout = 0;
};
// A number of Python. Throws: nb::type_error where it is none, invalid_argument where it is NaN.
double number(const Site& site, nb::handle value);
// Throws: nb::type_error for a name that is no option.
OptionArguments option_arguments(std::string_view op, const nb::kwargs& given);

// The options, with the arrays they read. Lives as long as the call, under the GIL at both ends.
class CallOptions {
 public:
  // `q` decides whose random generator gives the seed where there is none.
  // Place::any: dense masks and biases may be memory of a GPU.
  CallOptions(std::string_view op, const OptionArguments& given, const Array& q, Place place = Place::cpu);

  AttentionOptions value;

 private:
  const Tensor& borrow(const Site& site, nb::handle object);
  void add_bias(std::string_view op, nb::handle bias);
  Place place_;
  std::vector<std::unique_ptr<Array>> borrowed_;
};

// Each with the array it was made of, to which multihead.torch brings gradients; None where it was a number or nothing.
struct SimilarityObject {
  Similarity similarity;
  std::string text;
  nb::object given;
};
struct BiasObject {
  Bias bias;
  std::string text;
  nb::object given;
};
struct ScoreMixObject {
  ScoreMix mix;
  std::string text;
  nb::object given;
};

}  // namespace mh::python
