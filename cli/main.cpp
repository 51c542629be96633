// The program `multihead`: reads the command line, runs one verb, returns its code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "cli/usage.h"
#include "cli/verbs.h"

namespace {

constexpr const char* kAbout =
    "Trains, runs and shows Transformers; attention that is fast and exact on the CPU.\n"
    "\n"
    "New here? Run these in turn:\n"
    "  echo 'How are you?' | multihead translate              with the model that comes with the project\n"
    "  echo 'How are you?' | multihead translate --attention  and what it looked at\n"
    "  multihead doctor                                       what this machine has, and which kernels it will use\n"
    "  multihead selftest                                     every kernel against a double-precision reference\n"
    "  multihead bench attention --quick                      how fast it is, against this machine's own limits\n";

constexpr const char* kProgramEnd =
    "Environment:\n"
    "  MULTIHEAD_MODEL  the folder of the model to translate with, where none is named\n"
    "  MH_THREADS       how many threads to use; unset: every CPU this process may run on\n"
    "  MH_CPU_ISA       the highest instruction set to use: baseline, avx2, avx512, avx512_bf16, amx\n"
    "                   (neon on Arm)\n"
    "\n"
    "Exit codes: 0 all is well; 1 it ran and something failed; 2 the command line was not understood; 3 it\n"
    "stopped before the end, as asked by a signal.";

struct Place {
  const CLI::App* app;
  std::string command;  // "multihead bench attention"
};

// The innermost command that was named.
Place reached(const CLI::App& app) {
  Place at{&app, app.get_name()};
  while (!at.app->get_subcommands().empty()) {
    at.app = at.app->get_subcommands().front();
    at.command += " " + at.app->get_name();
  }
  return at;
}

int explain(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  const Place at = reached(app);
  fmt::print(stderr, "{}: {}; see '{} --help'\n", at.command, mh::cli::in_our_words(*at.app, error), at.command);
  return mh::cli::kUsage;
}

// The words of the command line; `help train` is `train --help`.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

int run(int argc, char** argv) {
  CLI::App app{kAbout, "multihead"};
  app.set_version_flag("--version", MH_VERSION, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.get_formatter()->column_width(28);
  app.get_formatter()->label("REQUIRED", "(required)");
  app.footer(kProgramEnd);
  int code = mh::cli::kDone;
  mh::cli::add_doctor(app, code);
  mh::cli::add_selftest(app, code);
  mh::cli::add_bench(app, code);
  mh::cli::add_train(app, code);
  mh::cli::add_translate(app, code);
  mh::cli::add_eval(app, code);
  mh::cli::add_tokenizer(app, code);
  mh::cli::add_inspect(app, code);
  mh::cli::add_average(app, code);

  const std::vector<std::string> words = words_of(argc, argv);
  const auto unknown = mh::cli::unknown_word(app, words);
  if (unknown) {
    fmt::print(stderr, "{}\n", *unknown);
    return mh::cli::kUsage;
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the end
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  const Place at = reached(app);
  const bool unfinished = !at.app->get_subcommands([](const CLI::App*) { return true; }).empty();
  if (!unfinished) return code;
  fmt::print(stderr, "{}", at.app->help(at.app == &app ? "" : app.get_name()));
  return mh::cli::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    // What was printed may wait in the buffer until now: a full disk must not look like success.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    fmt::print(stderr, "multihead: the output could not be written: {}\n", std::strerror(errno));
    return mh::cli::kFailed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "multihead: {}\n", error.what());
    return mh::cli::kFailed;
  }
}
