// Masks: multihead.causal() & multihead.window(…).
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include "python/bindings.h"
#include "python/docstrings.h"
#include "python/mask_object.h"

namespace mh::python {

using namespace nb::literals;

namespace {

MaskObject dense(const char* op, nb::handle where, Mask (*make)(const Tensor&)) {
  const auto kept = std::make_shared<Array>(Site{op, "the array"}, where, Access::read, Life::kept, Place::any);
  const Tensor& t = kept->tensor();
  check(t.dtype() == DType::boolean || t.dtype() == DType::u8,
        "{}: the array holds {}; expected bool, or u8 with 0 for false; it is {}", op, name(t.dtype()), t.shape());
  return {make(t), {kept}, fmt::format("{}({})", op, t.shape())};
}

MaskObject whole(const char* op, nb::handle n, Mask (*of_number)(int64_t), Mask (*of_tensor)(const Tensor&)) {
  int64_t number = 0;
  if (PyLong_Check(n.ptr()) && nb::try_cast(n, number)) {
    check_32_bits({op, "the argument"}, number);
    return {of_number(number), {}, fmt::format("{}({})", op, number)};
  }
  const Tensor t = copy_integers({op, "the argument"}, n);
  if (t.rank() == 0) return {of_number(t.data<int32_t>()[0]), {}, fmt::format("{}({})", op, t.data<int32_t>()[0])};
  return {of_tensor(t), {}, fmt::format("{}({})", op, t.shape())};
}

MaskObject causal_object(nb::handle offset) {
  if (offset.is_none()) return {causal(), {}, "causal()"};
  return whole("causal", offset, causal, causal);
}

MaskObject documents_object(nb::handle ids, nb::handle key_ids) {
  const Tensor first = copy_integers({"documents", "ids"}, ids);
  if (key_ids.is_none()) return {documents(first), {}, fmt::format("documents({})", first.shape())};
  const Tensor second = copy_integers({"documents", "key_ids"}, key_ids);
  return {documents(first, second), {}, fmt::format("documents({}, {})", first.shape(), second.shape())};
}

}  // namespace

MaskObject operator&(const MaskObject& a, const MaskObject& b) {
  MaskObject both{a.mask & b.mask, a.kept, a.text + " & " + b.text};
  both.kept.insert(both.kept.end(), b.kept.begin(), b.kept.end());
  return both;
}

void bind_mask(nb::module_& m) {
  nb::class_<MaskObject>(m, "Mask", docs::kMask)
      .def(nb::self & nb::self)
      .def("__bool__",  // else `a and b` would be b alone
           [](const MaskObject&) -> bool {
             throw nb::type_error("a mask is neither true nor false; masks are joined with &, not with `and`");
           })
      .def("__repr__", [](const MaskObject& self) { return "multihead." + self.text; });
  m.def("causal", causal_object, "offset"_a.none() = nb::none(), docs::kCausal);
  m.def(
      "positions", [](nb::handle offset) { return whole("positions", offset, positions, positions); }, "offset"_a,
      docs::kPositions);
  m.def(
      "prefix", [](nb::handle n) { return whole("prefix", n, prefix, prefix); }, "n"_a, docs::kPrefix);
  m.def(
      "window",
      [](int64_t left, int64_t right) {
        check_32_bits({"window", "left"}, left);
        check_32_bits({"window", "right"}, right);
        return MaskObject{window(left, right), {}, fmt::format("window({}, {})", left, right)};
      },
      "left"_a, "right"_a, docs::kWindow);
  m.def(
      "lengths",
      [](nb::handle counts) {
        const Tensor t = copy_integers({"lengths", "the argument"}, counts);
        return MaskObject{lengths(t), {}, fmt::format("lengths({})", t.shape())};
      },
      "counts"_a, docs::kLengths);
  m.def("documents", documents_object, "ids"_a, "key_ids"_a.none() = nb::none(), docs::kDocuments);
  m.def(
      "keep", [](nb::handle where) { return dense("keep", where, keep); }, "where"_a, docs::kKeep);
  m.def(
      "drop", [](nb::handle where) { return dense("drop", where, drop); }, "where"_a, docs::kDrop);
}

}  // namespace mh::python
