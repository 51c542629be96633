// What PyTorch would record: asked of PyTorch itself, in names that are looked up once.
#include "python/lost_gradients.h"

namespace mh::python {
namespace {

// torch.<path>, for the life of the process.
PyObject* of_torch(const char* module, const char* name) {
  return nb::getattr(nb::module_::import_(module), name).release().ptr();
}

bool is_true(PyObject* function) { return nb::cast<bool>(nb::handle(function)()); }

// Whether the array carries a derivative forwards that someone waits for.
bool has_tangent(nb::handle array) {
  static PyObject* const module = nb::module_::import_("torch.autograd.forward_ad").release().ptr();
  if (nb::cast<int>(nb::handle(module).attr("_current_level")) < 0) return false;
  static PyObject* const enabled = of_torch("torch._C", "_is_fwd_grad_enabled");
  return is_true(enabled) && !nb::handle(module).attr("unpack_dual")(array).attr("tangent").is_none();
}

}  // namespace

void refuse_gradient(const Site& site, nb::handle array) {
  if (!kind_of(array).has_gradients) return;
  if (has_tangent(array))
    fail(ErrorKind::unsupported, "{}: {} carries a derivative forwards; expected derivatives that run backwards",
         site.op, site.what);
  static PyObject* const recording = of_torch("torch", "is_grad_enabled");
  if (!nb::cast<bool>(array.attr("requires_grad")) || !is_true(recording)) return;
  fail(
      ErrorKind::invalid_argument,
      "{}: {} requires a gradient, which would be lost here; expected multihead.torch.attention, a detached tensor, or "
      "torch.no_grad()",
      site.op, site.what);
}

void refuse_recording(std::string_view op, nb::handle array) {
  if (!kind_of(array).has_gradients) return;
  static PyObject* const tracing = of_torch("torch._C", "_get_tracing_state");
  if (!nb::handle(tracing)().is_none())
    fail(ErrorKind::unsupported,
         "{}: torch.jit.trace would record the result as a constant; expected "
         "multihead.torch.scaled_dot_product_attention, which it sees",
         op);
  static PyObject* const transforms = of_torch("torch._C._functorch", "peek_interpreter_stack");
  if (!nb::handle(transforms)().is_none())
    fail(ErrorKind::unsupported,
         "{}: torch.func does not see into this call; expected multihead.torch.scaled_dot_product_attention", op);
}

}  // namespace mh::python
