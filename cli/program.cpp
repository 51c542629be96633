// The list of verbs, and what they share.
#include "cli/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/help_format.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "cli/verbs/selftest.h"

namespace mh::cli {
namespace {

constexpr const char* kAbout =
    "Trains, runs and shows Transformers; attention that is fast and exact on the CPU.\n"
    "\n"
    "New here? Run these in turn:\n"
    "  echo 'How are you?' | multihead translate              with the model that comes with the project\n"
    "  echo 'How are you?' | multihead translate --attention  and what it looked at\n"
    "  multihead show models/en-de 'Hi!' -o page.html         the same as a page to look around in\n"
    "  multihead new classify mine                            a configuration and example data for a task of your own\n"
    "  multihead doctor                                       what this machine has, and which kernels it will use\n"
    "  multihead selftest                                     every kernel against a double-precision reference\n"
    "  multihead bench attention --quick                      how fast it is, against this machine's own limits\n";

std::string exit_codes_text() {
  std::string out = "Exit codes:\n";
  for (const ExitCode& each : kExitCodes) out += fmt::format("  {:<8} {}\n", each.code, each.meaning);
  out.pop_back();
  return out;
}

void add_quiet(CLI::App& app) {
  const auto verbs = app.get_subcommands([](const CLI::App*) { return true; });
  // -q is the question or the query of some verbs.
  const char* names = app.get_option_no_throw("-q") != nullptr ? "--quiet" : "-q,--quiet";
  if (verbs.empty()) app.add_flag(names, quiet(), "no progress and no notes: only results and errors");
  for (CLI::App* verb : verbs) add_quiet(*verb);
}

}  // namespace

void make_program(CLI::App& app, int& code) {
  app.name("multihead");
  app.description(kAbout);
  app.formatter(std::make_shared<HelpFormat>());
  app.set_version_flag("-V,--version", MH_VERSION, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.footer(fmt::format("{}\n{}", kEnvironment, exit_codes_text()));
  add_doctor(app, code);
  add_selftest(app, code);
  add_bench(app, code);
  add_new(app, code);
  add_train(app, code);
  add_translate(app, code);
  add_summarise(app, code);
  add_generate(app, code);
  add_show(app, code);
  add_heads(app, code);
  add_explain_attention(app, code);
  add_classify(app, code);
  add_tag(app, code);
  add_embed(app, code);
  add_search(app, code);
  add_fill(app, code);
  add_answer(app, code);
  add_recommend(app, code);
  add_eval(app, code);
  add_tokenizer(app, code);
  add_inspect(app, code);
  add_convert(app, code);
  add_average(app, code);
  add_completion(app, code);
  add_reference(app, code);
  add_quiet(app);
}

}  // namespace mh::cli
