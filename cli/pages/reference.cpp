// `multihead reference`, hidden from the help: the pages that are made from the program itself.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/pages/commands.h"
#include "cli/pages/manual.h"
#include "cli/pages/models_page.h"
#include "cli/values.h"
#include "cli/verbs.h"

namespace mh::cli {
namespace {

// A line for every flag of every command that can be run: command, flag, value, limits, meaning; tabs between them.
std::string flag_table(const std::vector<CommandFacts>& commands) {
  std::string out;
  for (const CommandFacts& command : commands) {
    if (!command.verbs.empty()) continue;
    for (const FlagFacts& flag : command.flags)
      out += fmt::format("{}\t{}\t{}\t{}\t{}\n", command.name, flag.names.back(), flag.value, flag.limits, flag.about);
  }
  return out;
}

}  // namespace

void add_reference(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("reference", "print a page made from the program itself")->group("");
  auto form = std::make_shared<std::string>();
  verb->add_option("FORM", *form, "docs/cli.md, docs/models.md, multihead.1, or a line for every flag")
      ->type_name("")
      ->required()
      ->check(one_of({"markdown", "models", "man", "flags"}));
  verb->callback([form, &app, &code] {
    const std::vector<CommandFacts> commands = commands_of(app);
    fmt::print("{}", *form == "markdown" ? markdown_manual(commands)
                     : *form == "models" ? models_page()
                     : *form == "man"    ? man_page(commands, MH_VERSION)
                                         : flag_table(commands));
    code = kDone;
  });
}

}  // namespace mh::cli
