// `multihead selftest`: every kernel against the double-precision reference, on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/progress.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/selftest.h"

namespace mh::cli {
namespace {

constexpr size_t kFailuresShown = 20;

struct SelftestChoice {
  bool json = false, full = false;
  int64_t cases = 0;
  std::string rung;
};

// Nothing that ran is no success.
bool all_is_well(const SelftestReport& report) { return report.failed == 0 && report.ran > 0; }

void print_text(const SelftestReport& report) {
  fmt::print("machine  {}\nrung     {}\nran      {}\npassed   {}\nfailed   {}\nskipped  {}\nhash     {:016x}\n",
             report.machine, report.rung, report.ran, report.passed, report.failed, report.skipped, report.hash);
  for (size_t i = 0; i < report.failures.size() && i < kFailuresShown; ++i)
    fmt::print("  failed: {}\n", report.failures[i]);
  if (report.failures.size() > kFailuresShown)
    fmt::print("  and {} more; --json lists them all\n", report.failures.size() - kFailuresShown);
  fmt::print("{}\n", all_is_well(report) ? "selftest: all is well"
                     : report.ran == 0   ? "selftest: no case ran"
                                         : "selftest: this build does not compute right on this machine");
}

void print_json(const SelftestReport& report) {
  nlohmann::ordered_json out;
  out["machine"] = report.machine;
  out["rung"] = report.rung;
  out["ran"] = report.ran;
  out["passed"] = report.passed;
  out["failed"] = report.failed;
  out["skipped"] = report.skipped;
  out["hash"] = fmt::format("{:016x}", report.hash);
  out["failures"] = report.failures;
  fmt::print("{}\n", out.dump(2));
}

int run(const SelftestChoice& choice, const RunSelftest& selftest) {
  SelftestReport report;
  {
    Progress progress("cases");
    SelftestOptions options;
    options.full = choice.full;
    options.cases = choice.cases;
    options.rung = choice.rung;
    options.progress = [&](int64_t done, int64_t total) { progress.at(done, total); };
    report = selftest(options);
  }
  choice.json ? print_json(report) : print_text(report);
  return all_is_well(report) ? kDone : kFailed;
}

}  // namespace

void add_selftest(CLI::App& app, int& code, const RunSelftest& selftest) {
  CLI::App* verb = app.add_subcommand(
      "selftest", "compute many cases with every kernel and compare with a double-precision reference");
  auto choice = std::make_shared<SelftestChoice>();
  verb->add_flag("--json", choice->json, "print JSON: machine, rung, ran, passed, failed, skipped, hash, failures");
  verb->add_flag("--full", choice->full, "run every case of the table (minutes) instead of a spread of them (seconds)");
  verb->add_option("--cases", choice->cases, "run this many cases of attention alone")
      ->type_name("N")
      ->check(whole_number(1, 100000000));
  std::vector<std::string> rungs = kRungs;
  rungs.emplace_back("amx_twin");
  verb->add_option("--rung", choice->rung, "test this rung alone, or AMX's tiles in software (amx_twin); else all")
      ->type_name("NAME")
      ->check(one_of(rungs));
  verb->footer("Exit code 0 only if no case failed. Progress goes to stderr.");
  verb->callback([choice, selftest, &code] { code = run(*choice, selftest); });
}

}  // namespace mh::cli
