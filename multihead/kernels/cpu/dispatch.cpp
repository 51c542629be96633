// The ladder: what this machine can run, and the table in use.
#include "multihead/kernels/cpu/dispatch.h"

#include <array>
#include <atomic>
#include <cstdlib>

#include "multihead/base/error.h"
#include "multihead/kernels/cpu/isa/rungs.h"
#include "multihead/kernels/cpu/plain/plain.h"
#include "multihead/kernels/cpu/profile.h"

#if defined(__x86_64__)
#include "multihead/kernels/cpu/isa/amx_detect.h"
#endif

namespace mh::kernels {

namespace {

struct Step {
  Rung rung;
  std::string_view name;
  Table (*refine)(Table below);
  Table (*refine_rows)(Table below);  // null: those of the rung below
  Probes (*probe)(Probes below);
  std::string (*lacks)();  // what the machine lacks; empty: usable
  bool beside = false;     // a machine without it climbs past it
};

#if defined(__x86_64__)
std::string join_missing(std::initializer_list<std::pair<bool, const char*>> features) {
  std::string text;
  for (const auto& [present, feature] : features) {
    if (!present) text += (text.empty() ? "the CPU lacks " : ", ") + std::string(feature);
  }
  return text;
}

std::string lacks_baseline() {
  return join_missing({{__builtin_cpu_supports("sse4.2"), "SSE4.2"}, {__builtin_cpu_supports("popcnt"), "POPCNT"}});
}
[[maybe_unused]] std::string lacks_avx2() {
  return join_missing({{__builtin_cpu_supports("avx2"), "AVX2"},
                       {__builtin_cpu_supports("fma"), "FMA"},
                       {__builtin_cpu_supports("f16c"), "F16C"},
                       {__builtin_cpu_supports("bmi2"), "BMI2"},
                       {__builtin_cpu_supports("aes"), "AES"}});
}
std::string lacks_avx512() {
  return join_missing({{__builtin_cpu_supports("avx512f"), "AVX512F"},
                       {__builtin_cpu_supports("avx512bw"), "AVX512BW"},
                       {__builtin_cpu_supports("avx512cd"), "AVX512CD"},
                       {__builtin_cpu_supports("avx512dq"), "AVX512DQ"},
                       {__builtin_cpu_supports("avx512vl"), "AVX512VL"}});
}
// On Intel's cores VDPBF16PS takes two cycles: half the products of FMA on widened numbers (84 against 172 GFLOP/s,
// Sapphire Rapids). On Zen 4 two start in a cycle: twice those of FMA (235 against 117).
[[maybe_unused]] std::string lacks_avx512_bf16() {
  if (!__builtin_cpu_supports("avx512bf16")) return "the CPU lacks AVX512_BF16";
  return __builtin_cpu_is("amd") ? "" : "FMA is faster than VDPBF16PS on this maker's cores";
}
[[maybe_unused]] std::string lacks_amx() {
  const char* missing = amx_missing();
  return missing ? missing : "";
}

// A sanitized build leaves some out (MH_WITHOUT_RUNGS in CMakePresets.json).
constexpr std::array kSteps = {
    Step{Rung::baseline, "baseline", baseline::refine, baseline::refine_rows, baseline::probe, lacks_baseline},
#if !defined(MH_WITHOUT_AVX2)
    Step{Rung::avx2, "avx2", avx2::refine, avx2::refine_rows, avx2::probe, lacks_avx2},
#endif
    Step{Rung::avx512, "avx512", avx512::refine, avx512::refine_rows, avx512::probe, lacks_avx512},
#if !defined(MH_WITHOUT_AVX512_BF16)
    Step{Rung::avx512_bf16, "avx512_bf16", avx512_bf16::refine, avx512_bf16::refine_rows, avx512_bf16::probe,
         lacks_avx512_bf16, true},
#endif
#if !defined(MH_WITHOUT_AMX)
    Step{Rung::amx, "amx", amx::refine, nullptr, amx::probe, lacks_amx},
#endif
};
#else
constexpr std::array kSteps = {
    Step{Rung::neon, "neon", neon::refine, neon::refine_rows, neon::probe, [] { return std::string(); }},
};
#endif

// Tables by climbing: a rung whose machine features are missing ends the climb, unless it stands beside the way.
struct Ladder {
  std::array<Table, kSteps.size()> tables;
  std::array<Probes, kSteps.size()> probes;
  std::array<std::string, kSteps.size()> lacks;  // of the usable ones: empty
  size_t top = 0;

  Ladder() {
    Table below = plain::refine({});
    Probes probes_below;
    const Step* end = nullptr;
    for (size_t n = 0; n < kSteps.size(); ++n) {
      lacks[n] = kSteps[n].lacks();
      if (end && lacks[n].empty()) lacks[n] = fmt::format("the rung {} below it is not usable", end->name);
      if (!lacks[n].empty()) {
        if (!end && !kSteps[n].beside) end = &kSteps[n];
        continue;
      }
      below = kSteps[n].refine(below);
      if (kSteps[n].refine_rows) below = kSteps[n].refine_rows(below);
      below.rung = kSteps[n].name;
      tables[n] = below;
      probes[n] = probes_below = kSteps[n].probe(probes_below);
      top = n;
    }
    check(lacks[0].empty(), "kernels: {}; no rung of the ladder can run here", lacks[0]);
  }

  bool usable(size_t n) const { return n < kSteps.size() && lacks[n].empty(); }

  size_t index(Rung rung) const {
    for (size_t n = 0; n < kSteps.size(); ++n) {
      if (kSteps[n].rung == rung) return n;
    }
    return kSteps.size();
  }
};

const Ladder& ladder() {
  static const Ladder made;
  return made;
}

// Where MH_CPU_ISA stops the climb. An unknown or unusable name stops at the highest usable rung at or below it.
size_t first_choice() {
  const Ladder& all = ladder();
  size_t top = all.top;
  if (const char* wish = std::getenv("MH_CPU_ISA")) {
    const auto named = rung_named(wish);
    check(named.has_value(),
          "MH_CPU_ISA: no rung is named '{}'; expected one of baseline, avx2, avx512, avx512_bf16, amx, neon", wish);
    while (top > 0 && (kSteps[top].rung > *named || !all.usable(top))) --top;
  }
  return top;
}

std::atomic<const Table*> chosen{nullptr};
std::atomic<size_t> chosen_step{0};

const Table* choose_first() {
  const size_t top = first_choice();
  chosen_step = top;
  const Table* expected = nullptr;
  chosen.compare_exchange_strong(expected, &ladder().tables[top]);
  return chosen.load();
}

}  // namespace

std::string_view name(Rung rung) {
  switch (rung) {
    case Rung::baseline: return "baseline";
    case Rung::avx2: return "avx2";
    case Rung::avx512: return "avx512";
    case Rung::avx512_bf16: return "avx512_bf16";
    case Rung::amx: return "amx";
    case Rung::neon: return "neon";
  }
  return "?";
}

std::optional<Rung> rung_named(std::string_view wanted) {
  for (Rung rung : {Rung::baseline, Rung::avx2, Rung::avx512, Rung::avx512_bf16, Rung::amx, Rung::neon}) {
    if (name(rung) == wanted) return rung;
  }
  return std::nullopt;
}

std::vector<RungStatus> rungs() {
  std::vector<RungStatus> all;
  for (size_t n = 0; n < kSteps.size(); ++n) all.push_back({kSteps[n].rung, ladder().usable(n), ladder().lacks[n]});
  return all;
}

const Table& cpu() {
  const Table* table = chosen.load(std::memory_order_acquire);
  return table ? *table : *choose_first();
}

Rung rung() {
  cpu();
  return kSteps[chosen_step].rung;
}

const Probes& probes() {
  cpu();
  return ladder().probes[chosen_step];
}

void use_rung(Rung wanted) {
  const size_t n = ladder().index(wanted);
  check(n < kSteps.size(), "use_rung: {} is not a rung of this build", name(wanted));
  check(ladder().usable(n), "use_rung: {} cannot run here; {}", name(wanted), ladder().lacks[n]);
  chosen_step = n;
  chosen = &ladder().tables[n];
}

const Table* amx_twin() {
#if defined(__x86_64__)
  static const Table* twin = []() -> const Table* {
    const size_t below = ladder().index(Rung::avx512);
    if (!ladder().usable(below)) return nullptr;
    static Table table = twin::refine(ladder().tables[below]);
    table.rung = "amx_twin";
    return &table;
  }();
  return twin;
#else
  return nullptr;
#endif
}

void use_profile(bool on) {
  static Table timed;
  cpu();
  const Table& below = ladder().tables[chosen_step];
  if (on) timed = profiled(below);
  chosen = on ? &timed : &below;
}

void use_amx_twin(bool on) {
  check(!on || amx_twin() != nullptr, "use_amx_twin: the twin needs AVX-512, which this machine lacks");
  chosen = on ? amx_twin() : &ladder().tables[chosen_step];
}

}  // namespace mh::kernels
