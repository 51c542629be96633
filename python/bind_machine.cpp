// The machine and the threads as Python sees them.
#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "multihead/base/parallel.h"
#include "multihead/ops/machine.h"
#include "python/bindings.h"
#include "python/docstrings.h"

namespace mh::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

nb::dict machine() {
  const CpuInfo cpu = cpu_info();
  nb::list rungs;
  for (const RungInfo& rung : machine_rungs()) rungs.append(nb::make_tuple(rung.name, rung.usable, rung.why));
  nb::dict out;
  out["cpu"] = cpu.model;
  out["cpus"] = cpu.cores;
  out["rung"] = nb::str(rung_name().data(), rung_name().size());
  out["rungs"] = rungs;
  return out;
}

nb::dict build_info() {
  nb::dict out;
  out["version"] = MH_VERSION;
  out["compiler"] = MH_COMPILER;
  out["nanobind"] = fmt::format("{}.{}.{}", NB_VERSION_MAJOR, NB_VERSION_MINOR, NB_VERSION_PATCH);
#if defined(Py_LIMITED_API)
  out["stable_abi"] = true;
#else
  out["stable_abi"] = false;
#endif
  return out;
}

}  // namespace

void bind_machine(nb::module_& m) {
  m.attr("__version__") = MH_VERSION;
  m.def("set_threads", set_threads, "count"_a, docs::kSetThreads);
  m.def("threads", threads, docs::kThreads);
  m.def(
      "rung", [] { return std::string(rung_name()); }, docs::kRung);
  m.def(
      "use_rung", [](const std::string& name) { use_rung(name); }, "name"_a, docs::kUseRung);
  m.def("machine", machine, docs::kMachine);
  m.def("build_info", build_info, docs::kBuildInfo);
}

}  // namespace mh::python
