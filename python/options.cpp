// Keyword arguments: read, checked for what the types of Python leave open, and kept for the call.
#include "python/options.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <optional>
#include <string>

#include "python/lost_gradients.h"

namespace mh::python {
namespace {

// The object of ours that an option must be; `expected`: how one is made.
template <class Object>
Object& ours(const Site& site, nb::handle value, const char* expected) {
  Object* object = nullptr;
  if (nb::try_cast(value, object) && object) return *object;
  const std::string text =
      fmt::format("{}: {} is a {}; expected {}", site.op, site.what, nb::inst_name(value).c_str(), expected);
  throw nb::type_error(text.c_str());
}

uint64_t seed_of(std::string_view op, nb::handle given) {
  uint64_t seed = 0;
  if (nb::try_cast(given, seed)) return seed;
  const std::string text = fmt::format("{}: seed is {}; expected a whole number from 0 to 2**64 - 1", op,
                                       nb::cast<std::string>(nb::repr(given)));
  if (PyLong_Check(given.ptr())) throw nb::value_error(text.c_str());
  throw nb::type_error(text.c_str());
}

Similarity similarity_of(std::string_view op, const OptionArguments& given) {
  std::optional<float> scale;
  if (!given.scale.is_none()) scale = static_cast<float>(number({op, "scale"}, given.scale));
  if (given.similarity.is_none()) return DotSimilarity{scale};
  const SimilarityObject& chosen =
      ours<SimilarityObject>({op, "similarity"}, given.similarity, "multihead.cosine(…) or multihead.euclidean()");
  refuse_gradient({op, "tau"}, chosen.given);
  if (!scale) return chosen.similarity;
  check(!std::holds_alternative<CosineSimilarity>(chosen.similarity),
        "{}: scale {} is given together with cosine similarity; expected tau, which takes its place", op, *scale);
  return EuclideanSimilarity{scale};
}

// A seed out of the generator that the caller's library has, so that its own way to set seeds is obeyed.
uint64_t drawn_seed(const Array& q) {
  if (q.kind().has_gradients) {
    const nb::object torch = nb::module_::import_("torch");
    return nb::cast<uint64_t>(torch.attr("randint")(int64_t{1} << 62, nb::make_tuple()).attr("item")());
  }
  return nb::cast<uint64_t>(numpy("random").attr("randint")(int64_t{1} << 62));
}

}  // namespace

double number(const Site& site, nb::handle value) {
  const double read = PyFloat_AsDouble(value.ptr());
  if (read == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    const std::string text =
        fmt::format("{}: {} is a {}; expected a number", site.op, site.what, nb::inst_name(value).c_str());
    throw nb::type_error(text.c_str());
  }
  check(!std::isnan(read), "{}: {} is NaN; expected a number", site.op, site.what);
  return read;
}

OptionArguments option_arguments(std::string_view op, const nb::kwargs& given) {
  OptionArguments out;
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "mask")
      out.mask = value;
    else if (name == "bias")
      out.bias = value;
    else if (name == "scale")
      out.scale = value;
    else if (name == "similarity")
      out.similarity = value;
    else if (name == "softcap")
      out.softcap = number({op, "softcap"}, value);
    else if (name == "dropout")
      out.dropout = number({op, "dropout"}, value);
    else if (name == "seed")
      out.seed = value;
    else if (name == "sink")
      out.sink = value;
    else if (name == "cu_seqlens_q")
      out.cu_seqlens_q = value;
    else if (name == "cu_seqlens_k")
      out.cu_seqlens_k = value;
    else if (name == "score_mix")
      out.score_mix = value;
    else
      throw nb::type_error(fmt::format("{}() got an unexpected keyword argument '{}'", op, name).c_str());
  }
  return out;
}

const Tensor& CallOptions::borrow(const Site& site, nb::handle object) {
  borrowed_.push_back(std::make_unique<Array>(site, object, Access::read, Life::call, place_));
  refuse_gradient(site, object);
  return borrowed_.back()->tensor();
}

void CallOptions::add_bias(std::string_view op, nb::handle bias) {
  BiasObject* relative = nullptr;
  if (PyTuple_Check(bias.ptr()) || PyList_Check(bias.ptr())) {
    for (const nb::handle each : nb::borrow<nb::sequence>(bias)) add_bias(op, each);
  } else if (nb::try_cast(bias, relative) && relative) {
    refuse_gradient({op, "bias"}, relative->given);
    value.bias.push_back(relative->bias);
  } else {
    value.bias.emplace_back(DenseBias{borrow({op, "bias"}, bias)});
  }
}

CallOptions::CallOptions(std::string_view op, const OptionArguments& given, const Array& q, Place place)
    : place_(place) {
  if (!given.mask.is_none()) {
    const MaskObject& mask = ours<MaskObject>(
        {op, "mask"}, given.mask, "a multihead.Mask: causal(), keep(t) where True keeps, drop(t) where True drops, …");
    for (const std::shared_ptr<Array>& kept : mask.kept)
      check(place == Place::any || kept->gpu() < 0,
            "{}: the array of a mask does not lie in the CPU's memory; expected one that does", op);
    value.mask = mask.mask;
  }
  if (!given.bias.is_none()) add_bias(op, given.bias);
  if (!given.scale.is_none() || !given.similarity.is_none()) value.similarity = similarity_of(op, given);
  value.cap = static_cast<float>(given.softcap);
  if (!given.sink.is_none()) {
    refuse_gradient({op, "sink"}, given.sink);
    value.sink = copy_floats({op, "sink"}, given.sink);
  }
  if (given.dropout != 0) {
    value.dropout.p = static_cast<float>(given.dropout);
    value.dropout.seed = given.seed.is_none() ? drawn_seed(q) : seed_of(op, given.seed);
  }
  if (!given.score_mix.is_none()) {
    const auto& mix =
        ours<ScoreMixObject>({op, "score_mix"}, given.score_mix, "multihead.head_mix(…) or multihead.key_mix(…)");
    refuse_gradient({op, "score_mix"}, mix.given);
    value.score_mix = mix.mix;
  }
  check(given.cu_seqlens_q.is_none() == given.cu_seqlens_k.is_none(),
        "{}: one of cu_seqlens_q and cu_seqlens_k is missing; expected both or none", op);
  if (!given.cu_seqlens_q.is_none()) {
    value.packed = Packed{copy_integers({op, "cu_seqlens_q"}, given.cu_seqlens_q),
                          copy_integers({op, "cu_seqlens_k"}, given.cu_seqlens_k)};
  }
}

}  // namespace mh::python
