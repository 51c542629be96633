// The program `multihead`: reads the command line, runs one verb, returns its code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/exit_code.h"
#include "cli/program.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/usage.h"

namespace {

using namespace mh::cli;

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
  complain("{}: {}; see '{} --help'", at.command, in_our_words(*at.app, error), at.command);
  return kUsage;
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
  CLI::App app;
  int code = kDone;
  make_program(app, code);
  const std::vector<std::string> words = words_of(argc, argv);
  const auto unknown = unknown_word(app, words);
  if (unknown) {
    complain("{}", *unknown);
    return kUsage;
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the end
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  const Place at = reached(app);
  const bool unfinished = !at.app->get_subcommands([](const CLI::App*) { return true; }).empty();
  if (!unfinished) return code;
  put(stderr, at.app->help(at.app == &app ? "" : app.get_name()));
  return kUsage;
}

// Takes so much of the stack now: where memory has run out, the kernel cannot extend it, and ends the program without a
// word.
[[gnu::noinline]] void take_stack() {
  constexpr size_t kBytes = 256 << 10, kPage = 4096;
  [[maybe_unused]] volatile char pages[kBytes];
  for (size_t at = 0; at < kBytes; at += kPage) pages[at] = 0;
}

// Whoever reads the output may have seen enough (`| head`): that needs no sentence.
int output_lost(int error) {
  if (error != EPIPE) complain("multihead: the output could not be written: {}", std::strerror(error));
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  take_stack();
  settle_standard_streams();
  try {
    const int code = argc > 0 ? run(argc, argv) : kUsage;
    if (code == kDone) flush_output();  // what waits in the buffer until now: a full disk must not look like success
    return code;
  } catch (const OutputLost& lost) {
    return output_lost(lost.error);
  } catch (const std::bad_alloc&) {
    put(stderr, kNoMemory);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return output_lost(error.code().value());
    complain("multihead: {}", error.what());
  } catch (const std::exception& error) {
    const std::string_view sentence = error.what();
    complain("{}{}", sentence.starts_with("multihead: ") ? "" : "multihead: ", sentence);
  }
  return kFailed;
}
