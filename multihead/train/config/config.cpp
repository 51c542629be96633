// Reading a configuration: the file, the environment, the flags, each over the one before; then what must fit.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include "multihead/train/config/config.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "multihead/base/nearest.h"
#include "multihead/io/file_bytes.h"
#include "multihead/tasks/task_type.h"
#include "multihead/text/unicode/utf8.h"
#include "multihead/train/config/config_keys.h"
#include "multihead/train/config/run_options.h"

namespace mh {

namespace {

using detail::ConfigKey;
using detail::ConfigValue;

std::vector<std::string> sections() {
  std::vector<std::string> out;
  for (const ConfigKey& key : detail::config_keys())
    if (out.empty() || out.back() != key.section) out.push_back(key.section);
  return out;
}

// What to write instead of a key that does not exist: one of the same name elsewhere, then the nearest, at home first.
std::string instead_of(const std::string& section, const std::string& name) {
  std::vector<std::string> home, all;
  for (const ConfigKey& key : detail::config_keys()) {
    if (key.name == name) return fmt::format("did you mean {}?", key.path());
    all.push_back(key.name);
    if (key.section == section) home.push_back(key.name);
  }
  if (const auto meant = nearest(name, home)) return fmt::format("did you mean {}.{}?", section, *meant);
  if (const auto meant = nearest(name, all)) {
    const auto at = static_cast<size_t>(std::find(all.begin(), all.end(), *meant) - all.begin());
    return fmt::format("did you mean {}?", detail::config_keys()[at].path());
  }
  return home.empty() ? fmt::format("the sections are {}", fmt::join(sections(), ", "))
                      : fmt::format("expected one of {}", fmt::join(home, ", "));
}

const ConfigKey& key_of(const std::string& where, const std::string& section, const std::string& name) {
  for (const ConfigKey& key : detail::config_keys())
    if (key.section == section && key.name == name) return key;
  fail(ErrorKind::invalid_argument, "{}: there is no key {}{}{}; {}", where, section, section.empty() ? "" : ".", name,
       instead_of(section, name));
}

[[noreturn]] void refuse(const std::string& where, const ConfigKey& key, std::string_view shown) {
  fail(ErrorKind::invalid_argument, "{}: {} is {}; expected {}", where, key.path(), shown, key.expected);
}

std::optional<ConfigValue> value_of(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  return std::nullopt;
}

std::string_view kind_of(const toml::node& node) {
  if (node.is_table()) return "a table";
  return node.is_array() ? "an array" : "a date or a time";
}

std::string shown(const toml::node& node) {
  const std::optional<ConfigValue> value = value_of(node);
  return value ? detail::value_text(*value) : std::string(kind_of(node));
}

void check_section(const std::string& where, const std::string& name, const toml::node& node) {
  const std::vector<std::string> known = sections();
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    check(node.is_table(), "{}: {} is {}; expected a section [{}]", where, name, shown(node), name);
    return;
  }
  if (!node.is_table()) key_of(where, "", name);
  const auto meant = nearest(name, known);
  fail(ErrorKind::invalid_argument, "{}: there is no section [{}]; {}", where, name,
       meant ? fmt::format("did you mean [{}]?", *meant) : fmt::format("the sections are {}", fmt::join(known, ", ")));
}

void put_file(TrainConfig& config, std::string_view text, const std::string& name) {
  if (const auto broken = utf8_error(text)) {
    const auto lines = std::count(text.begin(), text.begin() + static_cast<int64_t>(*broken), '\n');
    fail(ErrorKind::invalid_argument, "{}:{}: this is not valid TOML: it is not UTF-8", name, lines + 1);
  }
  toml::table file;
  try {
    file = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::invalid_argument, "{}:{}: this is not valid TOML: {}", name, error.source().begin.line,
         error.description());
  }
  const auto place = [&](const toml::node& node) { return fmt::format("{}:{}", name, node.source().begin.line); };
  for (const auto& [title, entry] : file) {
    const std::string section(title.str());
    check_section(place(entry), section, entry);
    for (const auto& [word, node] : *entry.as_table()) {
      const ConfigKey& key = key_of(place(node), section, std::string(word.str()));
      const std::optional<ConfigValue> value = value_of(node);
      if (!value || !key.take(config, *value)) refuse(place(node), key, shown(node));
    }
  }
}

template <class T>
std::optional<ConfigValue> parsed(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A value from the command line or the environment: text needs no quotes there.
void put_text(TrainConfig& config, const std::string& where, const ConfigKey& key, const std::string& text) {
  check(!utf8_error(text), "{}: the value of {} is not UTF-8", where, key.path());
  std::optional<ConfigValue> value;
  const ConfigValue now = key.value(config);
  if (key.from_text)
    value = key.from_text(text);
  else if (std::holds_alternative<std::string>(now))
    value = text;
  else if (std::holds_alternative<int64_t>(now))
    value = parsed<int64_t>(text);
  else if (std::holds_alternative<double>(now))
    value = parsed<double>(text);
  else if (std::holds_alternative<bool>(now) && (text == "true" || text == "false"))
    value = text == "true";
  if (!value || !key.take(config, *value)) refuse(where, key, detail::value_text(text));
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return text;
}

// MULTIHEAD_<SECTION>_ is ours; any other variable is somebody else's.
void put_environment(TrainConfig& config) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const size_t equals = std::min(line.find('='), line.size());
    const std::string variable(line.substr(0, equals));
    for (const std::string& section : sections()) {
      const std::string prefix = "MULTIHEAD_" + upper(section) + "_";
      if (!variable.starts_with(prefix)) continue;
      std::string name = variable.substr(prefix.size());
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
      const ConfigKey& key = key_of(variable, section, name);
      put_text(config, variable, key, std::string(line.substr(std::min(equals + 1, line.size()))));
    }
  }
}

void put_override(TrainConfig& config, const std::string& text) {
  const size_t equals = text.find('='), dot = text.find('.');
  check(equals != std::string::npos, "--set {}: expected key=value, such as model.width=512", text);
  const bool sectioned = dot < equals;
  const std::string section = sectioned ? text.substr(0, dot) : "";
  const std::string name = sectioned ? text.substr(dot + 1, equals - dot - 1) : text.substr(0, equals);
  put_text(config, "--set", key_of("--set", section, name), text.substr(equals + 1));
}

}  // namespace

TrainConfig parse_config(std::string_view toml, const std::string& name) {
  TrainConfig config;
  put_file(config, toml, name);
  return config;
}

void override_config(TrainConfig& config, const std::vector<std::string>& overrides) {
  for (const std::string& each : overrides) put_override(config, each);
}

TrainConfig load_config(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  return parse_config({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}, path);
}

TrainConfig read_config(const std::string& path, const std::vector<std::string>& overrides) {
  TrainConfig config = load_config(path);
  put_environment(config);
  override_config(config, overrides);
  if (config.data.max_length == 0) config.data.max_length = config.model.max_length;
  check_config(config);
  return config;
}

void check_config(const TrainConfig& config) {
  const auto& [task, model, head, start, tokenizer, data, optimizer, train, recurrent] = config;
  const TaskType& type = task_type(task.kind);
  check(!data.train.empty(), "config: data.train is not given; expected the file of the training {}", type.examples);
  check(type.recurrent || !recurrent.is_recurrent(),
        "config: model.kind names a recurrent net, and task.kind is {}; expected translation", type.name);
  check(!train.output.empty(), "config: train.output is not given; expected the folder for the model");
  const bool attends = recurrent.is_recurrent() && recurrent.attention != PairAttention::none;
  check(!attends || (recurrent.hidden % 2 == 0 && recurrent.hidden <= 512),
        "config: model.hidden is {}; with model.attention expected an even number, at most 512", recurrent.hidden);
  check(!recurrent.is_recurrent() || model.encoder_layers > 0,
        "config: model.encoder_layers is 0; expected 1 or more of a recurrent net");
  check(recurrent.is_recurrent() || model.width % model.heads == 0,
        "config: model.width {} is not a multiple of model.heads {}", model.width, model.heads);
  check(recurrent.is_recurrent() || model.positions != ModelPositions::rotary || model.width / model.heads % 2 == 0,
        "config: rotary positions need heads of even width; model.width / model.heads is {}",
        model.width / model.heads);
  check(data.max_length <= model.max_length, "config: data.max_length {} is above model.max_length {}", data.max_length,
        model.max_length);
  type.check(detail::task_setup(config));
  check(data.valid.empty() || data.hold_out == 0,
        "config: data.hold_out is {}, and data.valid names a file; expected one of the two", data.hold_out);
  check(data.valid.empty() || data.hold_out_share == 0,
        "config: data.hold_out_share is {}, and data.valid names a file; expected one of the two", data.hold_out_share);
  check(recurrent.family().empty() || type.families,
        "config: model.kind is \"{}\", and task.kind \"{}\"; expected \"transformer\"", recurrent.family(), type.name);
  check(train.patience == 0 || type.judges_itself || data.validates(),
        "config: train.patience is {}, and there is no data.valid to judge by", train.patience);
  check(!recurrent.is_recurrent() || (train.frozen == 0 && train.layer_decay == 1),
        "config: train.frozen is {} and train.layer_decay {}, and model.kind names a recurrent net; expected 0 and 1",
        train.frozen, train.layer_decay);
  check(train.frozen == 0 || !start.from.empty(),
        "config: train.frozen is {}, and model.from names no model whose weights could be kept", train.frozen);
  check(optimizer.schedule != ScheduleKind::paper || optimizer.warmup > 0,
        "config: the paper's schedule needs a warm-up; optimizer.warmup is 0");
}

}  // namespace mh
