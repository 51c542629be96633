// `multihead doctor`: what the machine has, which rung is used and why, what is missing and what that means.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine_facts.h"
#include "cli/verbs.h"
#include "multihead/base/parallel.h"
#include "multihead/ops/attention/on_gpu.h"
#include "multihead/ops/machine.h"

namespace mh::cli {
namespace {

struct Variable {
  const char* name;
  const char* value;  // null where unset
};

Variable variable(const char* name) { return {name, std::getenv(name)}; }

std::string bytes_text(int64_t bytes) {
  if (bytes >= int64_t{1} << 30)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 30));
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

std::string caches_text(const bench::MachineFacts& facts) {
  std::vector<std::string> parts;
  for (const CacheInfo& cache : facts.cpu.caches) {
    if (cache.type == "Instruction") continue;
    parts.push_back(fmt::format("L{} {}{}", cache.level, bytes_text(cache.bytes),
                                cache.shared_by > 1 ? fmt::format(" shared by {} CPUs", cache.shared_by) : ""));
  }
  return parts.empty() ? "the system does not tell" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string instructions_text(const bench::MachineFacts& facts, bool present) {
  std::vector<std::string> names;
  for (const bench::InstructionSet& set : facts.instructions)
    if (set.present == present) names.push_back(set.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " "));
}

std::string meaning_without(const std::string& rung) {
  if (rung == "avx2") return "vectors of 128 bits without fused multiply-adds are used: a fraction of the speed";
  if (rung == "avx512") return "vectors of 256 bits are used: less speed on machines whose units are wider";
  if (rung == "avx512_bf16") return "bf16 is computed as f32 multiply-adds, as fast as f32, unless there are tiles";
  if (rung == "amx") return "bf16 has no tiles; with them its matrix products would be several times faster";
  return "a lower rung is used";
}

std::string gpu_text(const GpuFacts& gpu) {
  if (gpu.name.empty()) return gpu.driver.empty() ? "none" : fmt::format("none; driver for CUDA {}", gpu.driver);
  return fmt::format("{}, {}, compute capability {}.{}, driver for CUDA {}", gpu.name, bytes_text(gpu.memory),
                     gpu.major, gpu.minor, gpu.driver);
}

std::string gpu_kernels_text(const GpuFacts& gpu) {
  if (gpu.library.empty()) return "none";
  return fmt::format("{}, built with CUDA {}", gpu.library, gpu.toolkit);
}

std::string highest_rung(const std::vector<RungInfo>& rungs) {
  std::string highest;
  for (const RungInfo& rung : rungs)
    if (rung.usable) highest = rung.name;
  return highest;
}

// Why this rung: it is the highest, or something stopped the climb.
std::string why_rung(const std::vector<RungInfo>& rungs) {
  const Variable stop = variable("MH_CPU_ISA");
  const std::string highest = highest_rung(rungs);
  if (highest == rung_name()) return "the highest this machine can run";
  return stop.value ? fmt::format("MH_CPU_ISA={} stops the climb; {} could run", stop.value, highest)
                    : fmt::format("chosen by the program; {} could run", highest);
}

std::vector<std::string> notes(const bench::MachineFacts& facts, const std::vector<RungInfo>& rungs) {
  std::vector<std::string> out;
  for (const RungInfo& rung : rungs)
    if (!rung.usable) out.push_back(fmt::format("no {} ({}): {}", rung.name, rung.why, meaning_without(rung.name)));
  if (variable("MH_CPU_ISA").value && rung_name() != highest_rung(rungs))
    out.push_back(fmt::format("{}: unset MH_CPU_ISA to use all the machine has", why_rung(rungs)));
  if (facts.cpu.cores < facts.cpus_online)
    out.push_back(fmt::format("this process may use {} of {} CPUs (its affinity mask or cpuset)", facts.cpu.cores,
                              facts.cpus_online));
  if (threads() > facts.cpu.cores)
    out.push_back(
        fmt::format("{} threads share {} CPUs: more than one thread a CPU is slower", threads(), facts.cpu.cores));
  if (threads() < facts.cpu.cores)
    out.push_back(fmt::format("{} of {} allowed CPUs are used, as MH_THREADS says", threads(), facts.cpu.cores));
  if (facts.huge_pages == "never") out.push_back("huge pages are off: touching fresh memory is slower");
  if (facts.hypervisor)
    out.push_back("a hypervisor runs this machine: speed may change from moment to moment; trust fractions, not rates");
  return out;
}

void print_text(const bench::MachineFacts& facts, const std::vector<RungInfo>& rungs) {
  const auto line = [](const char* name, const std::string& text) { fmt::print("{:<14}{}\n", name, text); };
  fmt::print("multihead {}\n\n", MH_VERSION);
  line("CPU", facts.family > 0
                  ? fmt::format("{} (family {}, model {})", facts.cpu.model, facts.family, facts.model_number)
              : facts.cpu.model.empty() ? facts.architecture
                                        : facts.cpu.model);
  line("CPUs", fmt::format("{} of {} online may be used", facts.cpu.cores, facts.cpus_online));
  line("threads", fmt::format("{}", threads()));
  line("caches", caches_text(facts));
  line("memory", fmt::format("{}, huge pages: {}", bytes_text(facts.memory),
                             facts.huge_pages.empty() ? "unknown" : facts.huge_pages));
  line("system",
       fmt::format("{}, {}{}", facts.kernel, facts.architecture, facts.hypervisor ? ", under a hypervisor" : ""));
  const GpuFacts gpu = gpu_facts();
  line("GPU", gpu_text(gpu));
  line("  kernels", gpu_kernels_text(gpu));
  if (!gpu.missing.empty()) line("  missing", gpu.missing);
  line("instructions", instructions_text(facts, true));
  line("  missing", instructions_text(facts, false));
  for (const Variable& each : {variable("MH_CPU_ISA"), variable("MH_THREADS"), variable("MULTIHEAD_CUDA_LIBRARY")})
    fmt::print("{:<14}{}{}\n", each.name, std::strlen(each.name) < 14 ? "" : "  ", each.value ? each.value : "not set");

  fmt::print("\nRungs of the ladder, lowest first\n");
  for (const RungInfo& rung : rungs) {
    const bool in_use = rung.name == rung_name();
    fmt::print("  {:<12}{:<8}  {}\n", rung.name,
               in_use        ? "in use"
               : rung.usable ? "usable"
                             : "missing",
               in_use ? why_rung(rungs) : rung.why);
  }
  const std::vector<std::string> remarks = notes(facts, rungs);
  if (!remarks.empty()) fmt::print("\nWhat this means\n");
  for (const std::string& remark : remarks) fmt::print("  - {}\n", remark);
}

void print_json(const bench::MachineFacts& facts, const std::vector<RungInfo>& rungs) {
  nlohmann::ordered_json out;
  out["version"] = MH_VERSION;
  out["machine"] = bench::to_json(facts);
  out["rung"] = std::string(rung_name());
  out["why"] = why_rung(rungs);
  out["rungs"] = nlohmann::ordered_json::array();
  for (const RungInfo& rung : rungs)
    out["rungs"].push_back(
        {{"name", rung.name}, {"usable", rung.usable}, {"in_use", rung.name == rung_name()}, {"why", rung.why}});
  const GpuFacts gpu = gpu_facts();
  out["gpu"] = {{"name", gpu.name},
                {"memory", gpu.memory},
                {"compute_capability", gpu.name.empty() ? "" : fmt::format("{}.{}", gpu.major, gpu.minor)},
                {"driver", gpu.driver},
                {"kernels", gpu.library},
                {"toolkit", gpu.toolkit},
                {"missing", gpu.missing}};
  out["environment"] = nlohmann::ordered_json::object();
  for (const Variable& each : {variable("MH_CPU_ISA"), variable("MH_THREADS"), variable("MULTIHEAD_CUDA_LIBRARY")})
    out["environment"][each.name] = each.value ? nlohmann::ordered_json(each.value) : nlohmann::ordered_json();
  out["notes"] = notes(facts, rungs);
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

void add_doctor(CLI::App& app, int& code) {
  CLI::App* verb =
      app.add_subcommand("doctor", "what this machine has, which kernels it will use and why, and what is missing");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "print JSON: version, machine, rung, why, rungs, gpu, environment, notes");
  verb->footer(
      "Kernels are compiled for several instruction sets, the rungs of a ladder; the highest one this CPU can run is "
      "used.\n"
      "Set MH_CPU_ISA to a rung's name to stop lower, MH_THREADS to use fewer threads.");
  verb->callback([json, &code] {
    rung_name();  // refuses a wrong MH_CPU_ISA before anything is printed
    const bench::MachineFacts facts = bench::machine_facts();
    *json ? print_json(facts, machine_rungs()) : print_text(facts, machine_rungs());
    code = kDone;
  });
}

}  // namespace mh::cli
