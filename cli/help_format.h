// How --help shows a flag: its limits stand behind what it means.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mh::cli {

// Of the name of a flag's value, as CLI11 joins it with what its checks say of themselves, "N:1 to 1024".
struct ValueText {
  std::string name, limits;
};
ValueText value_text(const CLI::Option& option);

class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat();
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace mh::cli
