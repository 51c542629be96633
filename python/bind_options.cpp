// Similarities, biases and score mixing as small objects of Python.
#include <nanobind/stl/string.h>

#include "python/bindings.h"
#include "python/docstrings.h"
#include "python/options.h"

namespace mh::python {

using namespace nb::literals;

namespace {

template <class Object>
void bind_object(nb::module_& m, const char* name, const char* doc) {
  nb::class_<Object>(m, name, doc)
      .def("__repr__", [](const Object& self) { return "multihead." + self.text; })
      .def_ro("given", &Object::given, "The array it was made of; None where there was none.");
}

SimilarityObject cosine(nb::handle tau) {
  if (PyFloat_Check(tau.ptr()) || PyLong_Check(tau.ptr())) {
    const auto value = nb::cast<float>(tau);
    return {CosineSimilarity{value, {}}, fmt::format("cosine({})", value), nb::none()};
  }
  const Tensor taus = copy_floats({"cosine", "tau"}, tau);
  return {CosineSimilarity{1, taus}, fmt::format("cosine({})", taus.shape()), nb::borrow(tau)};
}

}  // namespace

void bind_options(nb::module_& m) {
  bind_object<SimilarityObject>(m, "Similarity", docs::kSimilarity);
  bind_object<BiasObject>(m, "Bias", docs::kBias);
  bind_object<ScoreMixObject>(m, "ScoreMix", docs::kScoreMix);
  m.def("cosine", cosine, "tau"_a = 1.0, docs::kCosine);
  m.def(
      "euclidean",
      [] {
        return SimilarityObject{EuclideanSimilarity{}, "euclidean()", nb::none()};
      },
      docs::kEuclidean);
  m.def(
      "alibi",
      [](nb::handle slopes) {
        const Tensor t = copy_floats({"alibi", "slopes"}, slopes);
        return BiasObject{AlibiBias{t}, fmt::format("alibi({})", t.shape()), nb::borrow(slopes)};
      },
      "slopes"_a, docs::kAlibi);
  m.def(
      "t5",
      [](nb::handle table, bool bidirectional, int64_t max_distance) {
        const Tensor t = copy_floats({"t5", "table"}, table);
        check_32_bits({"t5", "max_distance"}, max_distance);
        return BiasObject{T5Bias{t, bidirectional, max_distance}, fmt::format("t5({})", t.shape()), nb::borrow(table)};
      },
      "table"_a, nb::kw_only(), "bidirectional"_a = true, "max_distance"_a = 128, docs::kT5);
  m.def(
      "head_mix",
      [](nb::handle matrix) {
        const Tensor t = copy_floats({"head_mix", "matrix"}, matrix);
        return ScoreMixObject{HeadMix{t}, fmt::format("head_mix({})", t.shape()), nb::borrow(matrix)};
      },
      "matrix"_a, docs::kHeadMix);
  m.def(
      "key_mix",
      [](nb::handle matrix) {
        const Tensor t = copy_floats({"key_mix", "matrix"}, matrix);
        return ScoreMixObject{KeyMix{t}, fmt::format("key_mix({})", t.shape()), nb::borrow(matrix)};
      },
      "matrix"_a, docs::kKeyMix);
}

}  // namespace mh::python
