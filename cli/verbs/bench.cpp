// `multihead bench attention`, `gemm` and `rows`: rates, as fractions of this machine's own limits.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/report.h"
#include "bench/run.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/nearest.h"
#include "multihead/base/parallel.h"
#include "multihead/io/durable_file.h"
#include "multihead/ops/machine.h"

namespace mh::cli {
namespace {

struct BenchChoice {
  bench::Selection selection;
  bool json = false, list = false;
  std::string rung, folder;
  CLI::Option* record = nullptr;
};

using MakeCases = std::vector<bench::Case> (*)(const bench::ThreadChoice& threads);

constexpr const char* kColumns =
    "Every trial stands between two turns of a loop that does nothing but what bounds it: multiply-adds, pair\n"
    "or tile products (bf16 where a rung has them), or a plain read of the same memory (decode, rows). Columns:\n"
    "  rate      median; GFLOP/s of kept pairs, or GB/s of keys and values (weights, for products of few rows; all\n"
    "            that is read and written, for rows)\n"
    "  fraction  of the loop's rate, median over the trials; p90: 90th percentile, what a quiet machine would give\n"
    "  ratio     time against the plain case run beside it, per operation of the 64 x 64 tiles that hold a kept pair\n"
    "            (odd_*: the whole time, against sizes rounded up to 32)\n"
    "One thread is timed by its CPU time, several by wall time.";

// Unless asked otherwise: one thread, and two for the cases that tell how it scales.
bench::ThreadChoice thread_choice(const bench::Selection& selection) {
  if (!selection.threads.empty()) return {.counts = selection.threads, .every_case = true};
  return {.counts = threads() > 1 ? std::vector<int>{1, 2} : std::vector<int>{1}, .every_case = false};
}

std::vector<bench::Case> chosen(const BenchChoice& choice, MakeCases make) {
  const std::vector<bench::Case> all = make(thread_choice(choice.selection));
  const std::vector<bench::Case> cases = bench::select(all, choice.selection);
  if (!cases.empty()) return cases;
  std::vector<std::string> names;
  for (const bench::Case& c : all) names.push_back(c.name);
  const auto meant = choice.selection.names.empty() ? std::nullopt : nearest(choice.selection.names.front(), names);
  fail(ErrorKind::invalid_argument, "bench: no case fits these filters{}; --list names them all",
       meant ? fmt::format("; did you mean --case {}?", *meant) : "");
}

void print_names(const std::vector<bench::Case>& cases) {
  for (const bench::Case& c : cases)
    fmt::print("{} {} {} threads {}\n", c.name, mh::name(c.dtype), bench::name(c.pass), c.threads);
}

int run(const BenchChoice& choice, MakeCases make) {
  if (!choice.rung.empty()) use_rung(choice.rung);
  const std::vector<bench::Case> cases = chosen(choice, make);
  if (choice.list) {
    print_names(cases);
    return kDone;
  }
  const std::string folder = choice.folder.empty() ? "bench/results" : choice.folder;
  const bool recording = choice.record->count() > 0;
  // Before the measuring, so that minutes are not spent for nothing.
  if (recording) make_folder(folder);
  bench::Report report;
  {
    // A table on a terminal shows how far it is by itself.
    Progress progress("rows", !choice.json && isatty(STDOUT_FILENO) == 1);
    report = bench::run(cases, choice.selection, [&](const bench::Row* row, size_t done) {
      progress.at(static_cast<int64_t>(done), static_cast<int64_t>(cases.size()),
                  done < cases.size() ? cases[done].name : "done");
      if (choice.json) return;
      fmt::print("{}", row ? bench::table_line(*row) : bench::table_heading());
      std::fflush(stdout);
    });
  }
  if (choice.json)
    fmt::print("{}\n", bench::to_json(report).dump(2));
  else
    fmt::print("\n{}", bench::limits_text(report.limits));
  if (recording) mention("recorded in {}", bench::record(report, folder).string());
  return kDone;
}

void add_table(CLI::App& bench, int& code, const char* name, const char* about, MakeCases make) {
  CLI::App* verb = bench.add_subcommand(name, about);
  auto choice = std::make_shared<BenchChoice>();
  bench::Selection& selection = choice->selection;
  verb->add_flag("--quick", selection.quick, "a small table in under 20 seconds, rougher figures");
  verb->add_flag("--json", choice->json, "print JSON: machine, limits, rows");
  verb->add_flag("--list", choice->list, "name the cases that would run, and stop");
  verb->add_option("--case", selection.names, "only cases whose name contains one of these")
      ->delimiter(',')
      ->type_name("NAME");
  verb->add_option("--dtype", selection.dtypes, "only these; i8 is for decode")
      ->delimiter(',')
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16", "f16", "i8"}));
  if (make == bench::attention_cases)
    verb->add_option("--pass", selection.passes, "only these")
        ->delimiter(',')
        ->type_name("PASS")
        ->check(one_of({"forward", "backward", "decode"}));
  verb->add_option("--threads", selection.threads, "only rows of so many threads; default 1, and 2 for some cases")
      ->delimiter(',')
      ->type_name("N")
      ->check(whole_number(1, 1024));
  verb->add_option("--seconds", selection.seconds, "time for each row; default 0.5, quick 0.1")
      ->type_name("S")
      ->check(number(0.01, 600));
  verb->add_option("--rung", choice->rung, "use this rung")->type_name("NAME")->check(one_of(kRungs));
  choice->record =
      verb->add_option("--record", choice->folder,
                       "write the figures to DIR/<cpu>.json and .md, beside earlier rows; default DIR bench/results")
          ->expected(0, 1)
          ->type_name("[DIR]");
  verb->footer(kColumns);
  verb->callback([choice, make, &code] { code = run(*choice, make); });
}

}  // namespace

void add_bench(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("bench", "how fast it is, as a fraction of what this machine can do at most");
  verb->footer("Start with: multihead bench attention --quick");
  add_table(*verb, code, "attention", "attention: forward, backward and decode, in every type", bench::attention_cases);
  add_table(*verb, code, "gemm", "matrix products (M, K) x (K, N), weights packed beforehand", bench::gemm_cases);
  add_table(*verb, code, "rows", "what works on rows: norms, losses, dropout, activations, the optimiser's pass",
            bench::rows_cases);
  add_bench_train(*verb, code);
}

}  // namespace mh::cli
