// `multihead completion`: each script finds the command among the words typed so far, then offers what may follow.
#include "cli/pages/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "cli/values.h"
#include "cli/verbs.h"

namespace mh::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

// In single quotes of any of the three shells; fish takes \' inside, the others close and open them again.
std::string quoted(const std::string& text, const char* quote = "'\\''") {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += quote : out += c;
  return out + "'";
}

std::vector<std::string> flag_names(const CommandFacts& command) {
  std::vector<std::string> out;
  for (const FlagFacts& flag : command.flags)
    if (!flag.positional) out.insert(out.end(), flag.names.begin(), flag.names.end());
  return out;
}

// The words that may stand where no flag does.
std::vector<std::string> plain_words(const CommandFacts& command) {
  std::vector<std::string> out = command.verbs;
  for (const FlagFacts& flag : command.flags)
    if (flag.positional) out.insert(out.end(), flag.choices.begin(), flag.choices.end());
  return out;
}

bool takes_paths(const CommandFacts& command) {
  for (const FlagFacts& flag : command.flags)
    if (flag.positional && flag.takes_path()) return true;
  return false;
}

// "'bench attention'|'bench gemm'": those one word below another.
std::string known(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> names;
  for (const CommandFacts& command : commands)
    if (!command.name.empty()) names.push_back(quoted(command.name));
  return joined(names, "|");
}

// Lines of a case over "COMMAND FLAG" for flags that take a value: `words` and `paths` make the script's answer.
std::string value_cases(const std::vector<CommandFacts>& commands,
                        const std::function<std::string(const std::string&)>& words, const char* paths) {
  std::string out;
  for (const CommandFacts& command : commands) {
    for (const FlagFacts& flag : command.flags) {
      if (flag.positional || flag.value.empty()) continue;
      std::vector<std::string> places;
      for (const std::string& name : flag.names) places.push_back(quoted(command.name + ":" + name));
      const std::string answer = flag.takes_path() ? paths : words(joined(flag.choices));
      out += fmt::format("    {}) {}; return ;;\n", joined(places, "|"), answer);
    }
  }
  return out;
}

}  // namespace

std::string bash_completion(const std::vector<CommandFacts>& commands) {
  const auto words = [](const std::string& list) {
    return fmt::format("mapfile -t COMPREPLY < <(compgen -W {} -- \"$current\")", quoted(list));
  };
  constexpr const char* kPaths = "mapfile -t COMPREPLY < <(compgen -f -- \"$current\")";
  std::string out = fmt::format(
      "# Completes multihead in bash. Made by: multihead completion bash\n"
      "_multihead() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} command='' word\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    word=\"${{command:+$command }}$word\"\n"
      "    case $word in {}) command=$word ;; esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$command:${{COMP_WORDS[COMP_CWORD-1]}}\" in\n{}  esac\n"
      "  case \"$command:$current\" in\n",
      known(commands), value_cases(commands, words, kPaths));
  for (const CommandFacts& command : commands)
    out += fmt::format("    {}*) {} ;;\n", quoted(command.name + ":-"), words(joined(flag_names(command))));
  for (const CommandFacts& command : commands)
    out += fmt::format("    {}*) {} ;;\n", quoted(command.name + ":"),
                       takes_paths(command) ? kPaths : words(joined(plain_words(command))));
  return out + "  esac\n}\ncomplete -o filenames -F _multihead multihead\n";
}

std::string zsh_completion(const std::vector<CommandFacts>& commands) {
  const auto words = [](const std::string& list) { return list.empty() ? "_message value" : "compadd -- " + list; };
  std::string out = fmt::format(
      "#compdef multihead\n"
      "# Completes multihead in zsh. Made by: multihead completion zsh\n"
      "_multihead() {{\n"
      "  local command='' word\n"
      "  local -a offered\n"
      "  for word in \"${{(@)words[2,CURRENT-1]}}\"; do\n"
      "    word=\"${{command:+$command }}$word\"\n"
      "    case $word in ({}) command=$word ;; esac\n"
      "  done\n"
      "  case \"$command:${{words[CURRENT-1]}}\" in\n{}  esac\n"
      "  case \"$command:${{words[CURRENT]}}\" in\n",
      known(commands), value_cases(commands, words, "_files"));
  for (const CommandFacts& command : commands) {
    out += fmt::format("    {}*) offered=(", quoted(command.name + ":-"));
    for (const FlagFacts& flag : command.flags)
      for (const std::string& name : flag.names)
        if (!flag.positional) out += "\n      " + quoted(name + ":" + flag.about);
    out += "\n    ); _describe flag offered ;;\n";
  }
  for (const CommandFacts& command : commands)
    out += fmt::format("    {}*) {} ;;\n", quoted(command.name + ":"),
                       takes_paths(command) ? "_files" : words(joined(plain_words(command))));
  return out + "  esac\n}\ncompdef _multihead multihead\n";
}

std::string fish_completion(const std::vector<CommandFacts>& commands) {
  std::string out = fmt::format(
      "# Completes multihead in fish. Made by: multihead completion fish\n"
      "function __multihead_at\n"
      "  set -l command ''\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    set -l next (string trim -- \"$command $word\")\n"
      "    contains -- \"$next\" {}; and set command $next\n"
      "  end\n"
      "  test \"$command\" = \"$argv[1]\"\n"
      "end\n"
      "complete -c multihead -f\n",
      [&] {
        std::string names = known(commands);
        for (size_t bar = 0; (bar = names.find('|', bar)) != std::string::npos;) names[bar] = ' ';
        return names;
      }());
  constexpr const char* kQuote = "\\'";
  for (const CommandFacts& command : commands) {
    const std::string line =
        fmt::format("complete -c multihead -n {}", quoted("__multihead_at \"" + command.name + "\""));
    const std::vector<std::string> plain = plain_words(command);
    if (!plain.empty()) out += fmt::format("{} -a {}\n", line, quoted(joined(plain)));
    if (takes_paths(command)) out += line + " -F\n";
    for (const FlagFacts& flag : command.flags) {
      if (flag.positional) continue;
      out += line;
      for (const std::string& name : flag.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (flag.takes_path())
        out += " -r -F";
      else if (!flag.value.empty())
        out += flag.choices.empty() ? " -x" : " -x -a " + quoted(joined(flag.choices));
      out += fmt::format(" -d {}\n", quoted(flag.about, kQuote));
    }
  }
  return out;
}

void add_completion(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("completion", "print the script that completes commands in a shell");
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "the shell")->type_name("")->required()->check(one_of({"bash", "zsh", "fish"}));
  verb->footer(
      "An installed multihead brings them along. Else, for this user:\n"
      "\n"
      "  multihead completion bash > ~/.local/share/bash-completion/completions/multihead\n"
      "  multihead completion zsh > \"${fpath[1]}/_multihead\"\n"
      "  multihead completion fish > ~/.config/fish/completions/multihead.fish");
  verb->callback([shell, &app, &code] {
    const std::vector<CommandFacts> commands = commands_of(app);
    fmt::print("{}", *shell == "bash"  ? bash_completion(commands)
                     : *shell == "zsh" ? zsh_completion(commands)
                                       : fish_completion(commands));
    code = kDone;
  });
}

}  // namespace mh::cli
