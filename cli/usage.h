// What was typed wrong, said in one sentence with the nearest name that would have been right.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace mh::cli {

// The sentence about the first verb or flag among `words` (the command line without the program) that `app` does not
// know; nothing where it knows all of them.
std::optional<std::string> unknown_word(const CLI::App& app, const std::vector<std::string>& words);

// What CLI11 found wrong with the words of `verb`, in the words of this program.
std::string in_our_words(const CLI::App& verb, const CLI::ParseError& error);

}  // namespace mh::cli
