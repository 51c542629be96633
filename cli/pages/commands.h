// The program's commands as plain data: what completion, the manual and the page of the docs are made from.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mh::cli {

struct FlagFacts {
  std::vector<std::string> names{};  // "-q", "--quiet"; of an argument that is not a flag its name, "FILE"
  std::string value{}, limits{};     // "N", "1 to 1024"; empty where it takes none, or has none
  std::string about{};
  std::vector<std::string> choices{};  // the words it takes, where only some are taken
  bool required = false, positional = false;

  // A name of a file or folder may stand there.
  bool takes_path() const;
};

struct CommandFacts {
  std::string name{};  // without the program: "", "bench", "bench attention"
  std::string about{}, end{};
  std::vector<FlagFacts> flags{};
  std::vector<std::string> verbs{};  // that may follow; a command without any can be run
};

// The program itself, then every command, each before those below it; hidden ones are skipped.
std::vector<CommandFacts> commands_of(const CLI::App& app);

}  // namespace mh::cli
