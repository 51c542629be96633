// The parts of the extension module, each bound by its own file.
#pragma once

#include <nanobind/nanobind.h>

namespace mh::python {

void bind_attention(nanobind::module_& m);
void bind_cache(nanobind::module_& m);
void bind_generate(nanobind::module_& m);
void bind_gpu(nanobind::module_& m);
void bind_gradients(nanobind::module_& m);
void bind_machine(nanobind::module_& m);
void bind_mask(nanobind::module_& m);
void bind_matmul(nanobind::module_& m);
void bind_options(nanobind::module_& m);
void bind_pretrained(nanobind::module_& m);
void bind_recording(nanobind::module_& m);
void bind_show(nanobind::module_& m);
void bind_shared_threads(nanobind::module_& m);
void bind_tasks(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_train(nanobind::module_& m);
void bind_weights(nanobind::module_& m);

}  // namespace mh::python
