// What would be lost in silence where PyTorch watches a call that it cannot see into.
#pragma once

#include "python/array.h"

namespace mh::python {

// Throws: invalid_argument where PyTorch would expect a derivative through the array, backwards or forwards.
void refuse_gradient(const Site& site, nb::handle array);
// Throws: unsupported where torch.jit.trace would record the result of this call as a constant, or one of torch.func's
// transforms is at work. `array` is the call's first: asked once is enough.
void refuse_recording(std::string_view op, nb::handle array);

}  // namespace mh::python
