// Calls on arrays of an NVIDIA GPU: what multihead.torch._gpu is made of. Results are arrays that it has made.
#include <nanobind/stl/string.h>

#include <optional>

#include "multihead/ops/attention/on_gpu.h"
#include "python/bindings.h"
#include "python/options.h"

namespace mh::python {

using namespace nb::literals;

namespace {

// An array of the call, or nothing where None is given. All of them lie on the GPU of the first.
class Operands {
 public:
  explicit Operands(std::string_view op) : op_(op) {}

  Tensor of_gpu(const char* what, nb::handle object, Access access = Access::read) {
    const Array* array = add(what, object, access);
    if (!array) return {};
    if (gpu_ < 0) gpu_ = array->gpu();
    check(array->gpu() == gpu_ && gpu_ >= 0, "{}: {} lies on {}; expected the GPU that q lies on", op_, what,
          array->gpu() < 0 ? std::string("the CPU") : fmt::format("GPU {}", array->gpu()));
    return array->tensor();
  }
  Tensor of_cpu(const char* what, nb::handle object) {
    const Array* array = add(what, object, Access::write);
    if (!array) return {};
    check(array->gpu() < 0, "{}: {} lies on a GPU; expected the CPU", op_, what);
    return array->tensor();
  }
  const Array& first() const { return *arrays_.front(); }
  GpuQueue queue(uint64_t stream) const { return {gpu_, reinterpret_cast<void*>(stream)}; }

 private:
  const Array* add(const char* what, nb::handle object, Access access) {
    if (object.is_none()) return nullptr;
    arrays_.push_back(std::make_unique<Array>(Site{op_, what}, object, access, Life::call, Place::any));
    return arrays_.back().get();
  }
  std::string_view op_;
  int gpu_ = -1;
  std::vector<std::unique_ptr<Array>> arrays_;
};

void forward(nb::handle q, nb::handle k, nb::handle v, nb::handle o, nb::handle lse, uint64_t stream,
             const nb::kwargs& given) {
  constexpr std::string_view op = "attention";
  Operands operands(op);
  AttentionCall call{operands.of_gpu("q", q), operands.of_gpu("k", k), operands.of_gpu("v", v), {}};
  call.result = {operands.of_gpu("out", o, Access::write), operands.of_gpu("lse", lse, Access::write)};
  const CallOptions options(op, option_arguments(op, given), operands.first(), Place::any);
  nb::gil_scoped_release released;
  attention_into_on_gpu(call, options.value, operands.queue(stream));
}

// to: dq, dk, dv, dbias on the GPU; drelative, dsink, dtau on the CPU; each None where it is not wanted.
void backward(const nb::tuple& of, const nb::tuple& to, uint64_t stream, const nb::kwargs& given) {
  constexpr std::string_view op = "attention_backward";
  Operands operands(op);
  const char* names[] = {"q", "k", "v", "o", "lse", "d_o", "d_lse"};
  Tensor in[7];
  for (size_t n = 0; n < 7; ++n) in[n] = operands.of_gpu(names[n], of[n]);
  AttentionGradients out{operands.of_gpu("dq", to[0], Access::write), operands.of_gpu("dk", to[1], Access::write),
                         operands.of_gpu("dv", to[2], Access::write)};
  const CallOptions options(op, option_arguments(op, given), operands.first(), Place::any);
  const Tensor dense = operands.of_gpu("dbias", to[3], Access::write), relative = operands.of_cpu("drelative", to[4]);
  for (const Bias& bias : options.value.bias)
    out.dbias.push_back(std::holds_alternative<DenseBias>(bias) ? dense : relative);
  out.dsink = operands.of_cpu("dsink", to[5]);
  out.dtau = operands.of_cpu("dtau", to[6]);
  nb::gil_scoped_release released;
  attention_backward_into_on_gpu(out, {in[0], in[1], in[2], {in[3], in[4]}}, {in[5], in[6]}, options.value,
                                 operands.queue(stream));
}

nb::dict facts() {
  const GpuFacts found = gpu_facts();
  nb::dict out;
  out["library"] = found.library;
  out["missing"] = found.missing;
  out["name"] = found.name;
  out["compute_capability"] = found.name.empty() ? "" : fmt::format("{}.{}", found.major, found.minor);
  out["memory"] = found.memory;
  out["driver"] = found.driver;
  out["toolkit"] = found.toolkit;
  return out;
}

}  // namespace

void bind_gpu(nb::module_& m) {
  m.def("gpu_attention", forward, "q"_a, "k"_a, "v"_a, "o"_a, "lse"_a.none(), "stream"_a, "options"_a,
        "Attention into o and lse, on a stream of the GPU that all of them lie on.");
  m.def("gpu_gradients", backward, "of"_a, "to"_a, "stream"_a, "options"_a,
        "Gradients of (q, k, v, o, lse, d_o, d_lse) into (dq, dk, dv, dbias, drelative, dsink, dtau).");
  m.def("gpu_facts", facts, "What there is of GPUs, and what is missing.");
}

}  // namespace mh::python
