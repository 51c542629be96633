// CLI11's formatter, with limits in brackets: "threads to use, over MH_THREADS [1 to 1024]".
#include "cli/help_format.h"

namespace mh::cli {

ValueText value_text(const CLI::Option& option) {
  const std::string text = option.get_type_size() == 0 ? "" : option.get_type_name();
  const size_t colon = text.find(':');
  return {text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
}

HelpFormat::HelpFormat() {
  column_width(28);
  label("REQUIRED", "(required)");
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  const ValueText value = value_text(*option);
  std::string out = CLI::Formatter::make_option_opts(option);
  if (value.limits.empty()) return out;
  const std::string whole = option->get_type_name();
  return out.replace(out.find(whole), whole.size(), value.name);
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  const ValueText value = value_text(*option);
  return option->get_description() + (value.limits.empty() ? "" : " [" + value.limits + "]");
}

}  // namespace mh::cli
