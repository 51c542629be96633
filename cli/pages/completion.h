// Scripts that let a shell complete the program's commands, flags and words.
#pragma once

#include <string>
#include <vector>

#include "cli/pages/commands.h"

namespace mh::cli {

std::string bash_completion(const std::vector<CommandFacts>& commands);
std::string zsh_completion(const std::vector<CommandFacts>& commands);
std::string fish_completion(const std::vector<CommandFacts>& commands);

}  // namespace mh::cli
