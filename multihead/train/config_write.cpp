// The configuration as TOML, and the page about its keys.
#include "multihead/train/config_keys.h"

namespace mh {

namespace detail {

namespace {

constexpr const char* kAbove = R"(# Configuration

The keys of the TOML file that `multihead train CONFIG.toml` reads. `multihead train --keys` prints this page, and a
test keeps the two equal.

A key that is not in the file has its default. A variable of the environment named `MULTIHEAD_<SECTION>_<KEY>`, such as
`MULTIHEAD_MODEL_WIDTH=512`, goes over the file, and a flag `--set model.width=512` over both. A key that does not exist
and a value that does not fit are refused, with the line. Paths count from the folder where the program is started. The
configuration a run used, every key with its value, lies beside its model as `config.toml`.

## Files of sentence pairs
Lines of UTF-8 that end with `\n` or `\r\n`, in one of two forms: TSV, where source and target are two columns of a line
and further columns are not read; or two files whose lines belong together. What is wrong with a line is dealt with by one
rule each:

| a line | what happens |
|---|---|
| with an empty side, or nothing but white space on it | left out, counted, said |
| with a side that is not UTF-8 | left out, counted, said |
| of more than 65536 bytes | left out, counted, said |
| with more than `data.max_length` tokens on a side | left out, counted, said |
| without a column that is to be read | refused, with its number |

An empty file, a file without a pair that is left, and two files with different numbers of lines are refused. Nothing is
changed in the files, and nothing made from them is kept outside `train.output`. `multihead train CONFIG.toml --check`
reads it all, tries one step and writes nothing.
)";

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (code < 0x20 || code == 0x7F)
      out += fmt::format("\\u{:04X}", code);
    else
      out += c;
  }
  return out + '"';
}

// With a point or an exponent: without one TOML takes it for an integer.
std::string number_text(double x) {
  const std::string text = fmt::format("{}", x);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string_view about(std::string_view section) {
  if (section == "model") return "What is trained.";
  if (section == "tokenizer") return "How text becomes tokens.";
  if (section == "data") return "What it is trained on, and in which batches.";
  if (section == "optimizer") return "How weights move.";
  return "How long, how exactly, and where the result goes.";
}

}  // namespace

std::string value_text(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  return quoted(std::get<std::string>(value));
}

}  // namespace detail

std::string to_toml(const TrainConfig& config) {
  std::string out = "# A configuration of `multihead train`, every key with its value.\n", section;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    if (key.section != section) out += fmt::format("\n[{}]\n", section = key.section);
    out += fmt::format("# {}\n{} = {}\n", key.doc, key.name, detail::value_text(key.value(config)));
  }
  return out;
}

std::vector<std::string> config_changes(const TrainConfig& before, const TrainConfig& now) {
  std::vector<std::string> out;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    const std::string path = key.path();
    if (path == "train.output" || path == "train.save_every" || path == "train.keep" || path == "train.threads")
      continue;
    const std::string was = detail::value_text(key.value(before)), is = detail::value_text(key.value(now));
    if (was != is) out.push_back(fmt::format("{} was {} and is {}", path, was, is));
  }
  return out;
}

std::string configuration_page() {
  std::string out = detail::kAbove;
  const TrainConfig defaults;
  std::string section;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    if (key.section != section) {
      section = key.section;
      out += fmt::format("\n## [{}]\n{}\n\n| key | default | may hold | meaning |\n|---|---|---|---|\n", section,
                         detail::about(section));
    }
    out += fmt::format("| `{}` | `{}` | {} | {} |\n", key.name, detail::value_text(key.value(defaults)), key.expected,
                       key.doc);
  }
  return out;
}

}  // namespace mh
