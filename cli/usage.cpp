// Walks the words through the names that CLI11 holds.
#include "cli/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "multihead/base/nearest.h"

namespace mh::cli {
namespace {

// Without the hidden ones.
std::vector<std::string> verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::optional<std::string> verb_with(const CLI::App& app, const std::string& flag) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    if (verb->get_option_no_throw(flag)) return verb->get_name();
  return std::nullopt;
}

bool is_flag(std::string_view word) { return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9'); }

std::string list(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string sentence(std::string_view command, std::string_view what, std::string_view word,
                     const std::vector<std::string>& candidates) {
  const std::optional<std::string> meant = nearest(word, candidates);
  if (meant) return fmt::format("{}: there is no {} '{}'; did you mean '{}'?", command, what, word, *meant);
  if (candidates.empty()) return fmt::format("{}: there is no {} '{}', and none is expected", command, what, word);
  return fmt::format("{}: there is no {} '{}'; expected one of {}", command, what, word, list(candidates));
}

}  // namespace

std::optional<std::string> unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string command = app.get_name();
  for (const std::string& word : words) {
    const std::string bare = word.substr(0, word.find('='));
    if (is_flag(word)) {
      if (at->get_option_no_throw(bare)) continue;
      const std::optional<std::string> owner = verb_with(*at, bare);
      if (owner) return fmt::format("{0}: '{1}' is a flag of '{0} {2}'; write it after that", command, bare, *owner);
      return sentence(command, "flag", bare, flags(*at));
    }
    const std::vector<std::string> names = verbs(*at);
    if (names.empty()) continue;
    const auto named = at->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (named.empty()) return sentence(command, "command", word, names);
    at = named.front();
    command += " " + word;
  }
  return std::nullopt;
}

std::string in_our_words(const CLI::App& verb, const CLI::ParseError& error) {
  const std::string text = error.what(), flag = text.substr(0, text.find(':'));
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::ExtrasError: return fmt::format("unexpected argument '{}'", fmt::join(verb.remaining(), " "));
    case CLI::ExitCodes::ArgumentMismatch:
      return text.ends_with("missing") ? flag + " has no value" : flag + " is given more than once";
    case CLI::ExitCodes::RequiresError:
    case CLI::ExitCodes::ExcludesError: {
      const size_t space = text.find(' ');
      const bool needs = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiresError);
      return text.substr(0, space) + (needs ? " goes with " : " does not go with ") + text.substr(text.rfind(' ') + 1);
    }
    default: return text;
  }
}

}  // namespace mh::cli
