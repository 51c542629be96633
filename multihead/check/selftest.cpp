// Running the table of cases rung by rung; references and garbage are made once per case.
#include "multihead/check/selftest.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>

#include "multihead/base/out_of_memory.h"
#include "multihead/base/parallel.h"
#include "multihead/check/garbage.h"
#include "multihead/check/op_case.h"
#include "multihead/kernels/cpu/dispatch.h"

namespace mh {
namespace {

constexpr int64_t kFullCombinations = 100'000;
constexpr int64_t kBatch = 64;

// A rung, or the software twin of the AMX one, which only bf16 takes.
struct Step {
  std::string name;
  std::optional<kernels::Rung> rung;

  void take() const {
    if (rung) {
      kernels::use_rung(*rung);
    } else {
      kernels::use_amx_twin(true);
    }
  }
  bool skips(const AttentionCase& c) const { return !rung && c.dtype != DType::bf16; }
};

// Puts back what a self-test changes.
class Restore {
 public:
  Restore() = default;
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;
  ~Restore() {
    kernels::use_amx_twin(false);
    kernels::use_rung(rung_);
    set_threads(threads_);
  }

 private:
  kernels::Rung rung_ = kernels::rung();
  int threads_ = threads();
};

std::vector<Step> steps(const std::string& only) {
  std::vector<Step> out;
  for (const kernels::RungStatus& status : kernels::rungs()) {
    const std::string name(kernels::name(status.rung));
    if (!only.empty() && name != only) continue;
    check(only.empty() || status.usable, "selftest: this machine cannot run the rung {}; {}", name, status.why);
    if (status.usable) out.push_back({name, status.rung});
  }
  if ((only.empty() || only == "amx_twin") && kernels::amx_twin()) out.push_back({"amx_twin", std::nullopt});
  check(!out.empty(), "selftest: no rung is called {}; expected one of those `multihead doctor` lists", only);
  return out;
}

std::string machine_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

// What every rung is given of a case.
struct PreparedCase {
  JudgedCase judged;
  Planted planted;

  explicit PreparedCase(const AttentionCase& c)
      : judged(c), planted(c.seed % 2 == 0 ? plant_everywhere(c, c.seed) : plant_by_pair(c, c.seed)) {}
};

struct Findings {
  bool garbage = false;
  uint64_t hash = 0;
  std::vector<std::string> failures{};
};

void try_garbage(const Planted& planted, const CaseOutputs& clean, Findings& out) {
  if (planted.places == 0) return;
  out.garbage = true;
  for (std::string& each : judge_garbage(planted, clean, run_case(planted.in))) out.failures.push_back(std::move(each));
}

Findings examine(const PreparedCase& prepared, uint64_t hash) {
  constexpr int kThreadCounts[] = {2, 3, 7, 16};
  Findings out{.hash = hash};
  const JudgedCase& judged = prepared.judged;
  const CaseInputs& in = judged.in;
  if (judged.c.mix == CaseMix::none && explain(in.q, in.k, in.v, in.options).composed) {
    out.failures.push_back("explain says composed without score mixing");
  }
  set_threads(1);
  const CaseOutputs alone = run_case(in);
  for (const auto& [name, tensor] : named_outputs(alone)) out.hash = hash_of(tensor, out.hash);
  for (std::string& each : judged.judge(alone)) out.failures.push_back(std::move(each));
  const int count = kThreadCounts[judged.c.seed % 4];
  set_threads(count);
  const CaseOutputs shared = run_case(in);
  for (const std::string& each : differing(alone, shared)) {
    out.failures.push_back(fmt::format("{}: its bits differ between 1 and {} threads", each, count));
  }
  set_threads(1);
  try_garbage(prepared.planted, alone, out);
  return out;
}

void run_step(const Step& step, const PreparedCase& prepared, SelftestReport& report) {
  const AttentionCase& c = prepared.judged.c;
  if (step.skips(c)) {
    ++report.skipped;
    return;
  }
  Findings found;
  try {
    found = examine(prepared, report.hash);
  } catch (const OutOfMemory&) {  // says nothing about the kernel
    throw;
  } catch (const Error& error) {
    found.failures.push_back(fmt::format("threw: {}", error.what()));
  }
  ++report.ran;
  ++(found.failures.empty() ? report.passed : report.failed);
  report.garbage += found.garbage;
  report.hash = found.hash;
  for (const std::string& each : found.failures)
    report.failures.push_back(fmt::format("{} {}: {}", step.name, c.label(), each));
}

// A family of ops.
void run_ops(const Step& step, const std::vector<JudgedOp>& judged, SelftestReport& report) {
  const auto found = examine(judged);
  for (size_t n = 0; n < judged.size(); ++n) {
    const OpOutputs outputs = judged[n].run();
    report.hash = hash_of(outputs.y, report.hash);
    for (const Tensor& gradient : outputs.gradients) report.hash = hash_of(gradient, report.hash);
    ++report.ran;
    ++(found[n].empty() ? report.passed : report.failed);
    for (const std::string& each : found[n])
      report.failures.push_back(fmt::format("{} {}: {}", step.name, judged[n].label, each));
  }
}

// run(step) on every step of the ladder.
template <class Run>
void climb(const std::vector<Step>& ladder, const Run& run) {
  for (const Step& step : ladder) {
    step.take();
    run(step);
    if (!step.rung) kernels::use_amx_twin(false);
  }
}

}  // namespace

SelftestReport selftest(const SelftestOptions& options) {
  const std::vector<Step> ladder = steps(options.rung);
  const auto rungs = static_cast<int64_t>(
      std::count_if(ladder.begin(), ladder.end(), [](const Step& s) { return s.rung.has_value(); }));
  int64_t count = options.full ? (kFullCombinations + rungs - 1) / std::max<int64_t>(rungs, 1) : kSelftestCases;
  if (options.cases > 0) count = options.cases;
  const std::vector<AttentionCase> cases = attention_cases(count);

  const Restore restore;
  const int all_threads = threads();
  SelftestReport report;
  report.machine = machine_name();
  for (const Step& step : ladder) report.rung += (report.rung.empty() ? "" : " ") + step.name;
  for (int64_t begin = 0; begin < count; begin += kBatch) {
    std::vector<std::unique_ptr<PreparedCase>> prepared(std::min(kBatch, count - begin));
    set_threads(all_threads);
    parallel_for(static_cast<int64_t>(prepared.size()),
                 [&](int64_t n) { prepared[n] = std::make_unique<PreparedCase>(cases[begin + n]); });
    climb(ladder, [&](const Step& step) {
      for (const auto& each : prepared) run_step(step, *each, report);
    });
    if (options.progress) options.progress(begin + static_cast<int64_t>(prepared.size()), count);
  }
  if (options.cases > 0) return report;
  for (const std::vector<OpCase>& family : op_families()) {
    const std::vector<JudgedOp> judged = judged_ops(family);
    climb(ladder, [&](const Step& step) { run_ops(step, judged, report); });
  }
  return report;
}

}  // namespace mh
