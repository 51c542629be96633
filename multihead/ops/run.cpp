// Refusals of tensors on two devices, and whether contents are read.
#include "multihead/ops/run.h"

#include <atomic>

#include "multihead/ops/machine.h"

namespace mh {

namespace {

std::atomic<bool> everywhere{false};

}  // namespace

void check_contents_everywhere(bool on) { everywhere = on; }

bool detail::reads_contents(const Tensor& x) { return x.device().is_cpu() || everywhere; }

void detail::check_devices(std::string_view op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* t : tensors) {
    if (!*t) continue;
    if (first == nullptr) first = t;
    if (first->device() == t->device()) continue;
    fail(ErrorKind::invalid_argument,
         "{}: one tensor is {}'s and another {}'s; expected one device; they are {} and {}", op, name(first->device()),
         name(t->device()), first->shape(), t->shape());
  }
}

}  // namespace mh
