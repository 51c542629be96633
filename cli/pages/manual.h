// The program's page in the docs and its man page, made from its commands.
#pragma once

#include <string>
#include <vector>

#include "cli/pages/commands.h"

namespace mh::cli {

// docs/cli.md.
std::string markdown_manual(const std::vector<CommandFacts>& commands);
// multihead.1, for man(1).
std::string man_page(const std::vector<CommandFacts>& commands, const std::string& version);

}  // namespace mh::cli
