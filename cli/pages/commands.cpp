// Reads the commands out of CLI11.
#include "cli/pages/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/help_format.h"

namespace mh::cli {
namespace {

// "f32, bf16" is a list of words; "1 to 9" and "above 0, at most 1" are limits.
std::vector<std::string> words_in(const std::string& limits) {
  std::vector<std::string> words;
  size_t begin = 0;
  while (begin < limits.size()) {
    const size_t end = std::min(limits.find(", ", begin), limits.size());
    words.push_back(limits.substr(begin, end - begin));
    if (words.back().find(' ') != std::string::npos) return {};
    begin = end + 2;
  }
  return words;
}

FlagFacts facts_of(const CLI::Option& option) {
  FlagFacts out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  out.positional = out.names.empty();
  if (out.positional) out.names.push_back(option.get_name());
  const ValueText value = value_text(option);
  out.value = value.name;
  out.limits = value.limits;
  out.about = option.get_description();
  out.choices = words_in(value.limits);
  out.required = option.get_required();
  return out;
}

void add(const CLI::App& app, const std::string& name, std::vector<CommandFacts>& out) {
  CommandFacts facts{.name = name, .about = app.get_description(), .end = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) facts.flags.push_back(facts_of(*option));
  const auto verbs = app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
  for (const CLI::App* verb : verbs) facts.verbs.push_back(verb->get_name());
  out.push_back(std::move(facts));
  for (const CLI::App* verb : verbs) add(*verb, (name.empty() ? "" : name + " ") + verb->get_name(), out);
}

}  // namespace

bool FlagFacts::takes_path() const {
  if (!choices.empty()) return false;
  return positional || value == "FILE" || value == "DIR" || value == "[DIR]";
}

std::vector<CommandFacts> commands_of(const CLI::App& app) {
  std::vector<CommandFacts> out;
  add(app, "", out);
  return out;
}

}  // namespace mh::cli
