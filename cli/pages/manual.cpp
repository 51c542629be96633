// One walk over the commands for each form.
#include "cli/pages/manual.h"

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/program.h"

namespace mh::cli {
namespace {

std::string whole_name(const CommandFacts& command) {
  return command.name.empty() ? "multihead" : "multihead " + command.name;
}

std::string usage(const CommandFacts& command) {
  std::string out = whole_name(command);
  if (!command.verbs.empty()) return out + " COMMAND";
  for (const FlagFacts& flag : command.flags) {
    if (!flag.positional && !flag.required) continue;
    std::string text = flag.names.back();
    if (!flag.positional) text += " " + flag.value;
    out += flag.required ? " " + text : " [" + text + "]";
  }
  return out + " [FLAGS]";
}

std::string about(const FlagFacts& flag) {
  return flag.about + (flag.limits.empty() ? "" : " [" + flag.limits + "]") + (flag.required ? " (required)" : "");
}

std::string name_of(const FlagFacts& flag) {
  return fmt::format("{}{}", fmt::join(flag.names, ", "), flag.value.empty() ? "" : " " + flag.value);
}

// A table's bars would end its cells.
std::string cell(std::string text) {
  for (size_t bar = 0; (bar = text.find('|', bar)) != std::string::npos; bar += 2) text.insert(bar, 1, '\\');
  return text;
}

// Text as roff takes it: no line begins with a control character, and backslashes, hyphens and quotes stay themselves.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool start = out.empty() || out.back() == '\n';
    if (start && (c == '.' || c == '\'')) out += "\\&";
    c == '\\'   ? out += "\\e"
    : c == '-'  ? out += "\\-"
    : c == '\'' ? out += "\\(aq"
    : c == '`'  ? out += "\\(ga"
                : out += c;
  }
  return out;
}

std::string as_typed(const std::string& text) { return text.empty() ? "" : ".PP\n.nf\n" + roff(text) + "\n.fi\n"; }

}  // namespace

std::string markdown_manual(const std::vector<CommandFacts>& commands) {
  std::string out =
      "# The command line\n\nMade by `multihead reference markdown` from the program itself; a test keeps it so.\n";
  for (const CommandFacts& command : commands) {
    out += fmt::format("\n## {}\n", whole_name(command));
    out += command.name.empty() ? "```\n" + command.about + "```\n" : command.about + "\n";
    out += fmt::format("```\n{}\n```\n", usage(command));
    for (const std::string& verb : command.verbs) {
      const std::string name = command.name.empty() ? verb : command.name + " " + verb;
      for (const CommandFacts& each : commands)
        if (each.name == name) out += fmt::format("- `{}`: {}\n", whole_name(each), each.about);
    }
    if (!command.verbs.empty()) out += "\n";
    out += "| flag | meaning |\n|---|---|\n";
    for (const FlagFacts& flag : command.flags)
      out += fmt::format("| `{}` | {} |\n", cell(name_of(flag)), cell(about(flag)));
    if (!command.name.empty() && !command.end.empty()) out += fmt::format("\n```\n{}\n```\n", command.end);
  }
  out += fmt::format("\n## Environment\n```\n{}```\n",
                     std::string(kEnvironment).substr(std::string("Environment:\n").size()));
  out += "\n## Exit codes\n| code | meaning |\n|---|---|\n";
  for (const ExitCode& each : kExitCodes) out += fmt::format("| {} | {} |\n", each.code, each.meaning);
  return out;
}

std::string man_page(const std::vector<CommandFacts>& commands, const std::string& version) {
  std::string out = fmt::format(
      ".TH MULTIHEAD 1 \"\" \"multihead {}\" \"User Commands\"\n"
      ".SH NAME\nmultihead \\- trains, runs and shows Transformers\n"
      ".SH SYNOPSIS\n.B multihead\nCOMMAND [FLAGS]\n.SH DESCRIPTION\n",
      version);
  out += as_typed(commands.front().about) + ".SH COMMANDS\n";
  for (const CommandFacts& command : commands) {
    out += fmt::format(".SS {}\n", roff(usage(command)));
    if (!command.name.empty()) out += roff(command.about) + "\n";
    for (const FlagFacts& flag : command.flags)
      out += fmt::format(".TP\n.B {}\n{}\n", roff(name_of(flag)), roff(about(flag)));
    if (!command.name.empty()) out += as_typed(command.end);
  }
  out += ".SH ENVIRONMENT\n" + as_typed(kEnvironment) + ".SH EXIT STATUS\n";
  for (const ExitCode& each : kExitCodes) out += fmt::format(".TP\n.B {}\n{}\n", each.code, roff(each.meaning));
  return out;
}

}  // namespace mh::cli
