// The keys of generation_config.json, each read once.
#include "multihead/generate/generation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"

namespace mh {

namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

constexpr int64_t kMostTokens = 1 << 30;
constexpr int64_t kDefaultWritten = 20, kDefaultTopK = 50;

// The values of a JSON object by key; null is as if the key were missing.
class Keys {
 public:
  Keys(std::string_view json, const std::string& name) : name_(name), object_(Json::parse(json, nullptr, false)) {
    if (!object_.is_object()) fail(ErrorKind::io, "{}: is not a JSON object", name);
  }

  const Json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  std::optional<int64_t> count(const char* key, int64_t least = 0) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    return whole(key, *value, least, kMostTokens);
  }
  std::optional<double> number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_number()) refuse(key, "a number");
    return value->get<double>();
  }
  bool flag(const char* key) const {
    const Json* value = find(key);
    if (value != nullptr && !value->is_boolean()) refuse(key, "true or false");
    return value != nullptr && value->get<bool>();
  }
  // A number or a list of them.
  Ids ids(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    return value->is_array() ? list(key, *value) : Ids{id(key, *value)};
  }
  std::vector<Ids> lists(const char* key) const {
    std::vector<Ids> out;
    const Json* value = find(key);
    if (value == nullptr) return out;
    if (!value->is_array()) refuse(key, "a list of lists of ids");
    for (const Json& entry : *value) out.push_back(list(key, entry));
    return out;
  }
  [[noreturn]] void refuse(const char* key, const char* expected) const {
    const std::string value = object_.at(key).dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60);
    fail(ErrorKind::io, "{}: {} is {}; expected {}", name_, key, printable(value), expected);
  }

 private:
  int64_t whole(const char* key, const Json& value, int64_t least, int64_t most) const {
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(most)
                                                 : value.is_number_integer() && value.get<int64_t>() >= least;
    if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
      refuse(key, fmt::format("whole numbers from {} to {}", least, most).c_str());
    return value.get<int64_t>();
  }
  int32_t id(const char* key, const Json& value) const {
    return static_cast<int32_t>(whole(key, value, -1, kMostTokens));
  }
  Ids list(const char* key, const Json& value) const {
    if (!value.is_array()) refuse(key, "a list of ids");
    Ids out;
    for (const Json& entry : value) out.push_back(id(key, entry));
    return out;
  }

  const std::string& name_;
  Json object_;
};

// Where the key is there, its value takes the place's.
template <class Value, class Place>
void put(const std::optional<Value>& value, Place& place) {
  if (value) place = static_cast<Place>(*value);
}

void put_lengths(const Keys& keys, WritingRules& rules) {
  put(keys.count("min_new_tokens"), rules.min_length);
  const std::optional<int64_t> written = keys.count("max_new_tokens", 1), text = keys.count("max_length", 1);
  if (written || text) {
    rules.max_length = written.value_or(0);
    rules.max_text = written ? 0 : *text;
  }
  if (rules.max_length > 0) rules.min_length = std::min(rules.min_length, rules.max_length);
  put(keys.count("min_length"), rules.min_text);
  if (rules.min_length > 0) rules.min_text = 0;
}

void put_rules(const Keys& keys, WritingRules& rules) {
  put(keys.number("repetition_penalty"), rules.repetition_penalty);
  put(keys.count("no_repeat_ngram_size"), rules.no_repeat_ngram);
  put(keys.count("encoder_no_repeat_ngram_size"), rules.no_repeat_source_ngram);
  if (keys.find("bad_words_ids")) rules.bad_words = keys.lists("bad_words_ids");
  if (keys.find("forced_eos_token_id")) rules.forced_ends = keys.ids("forced_eos_token_id");
  if (keys.find("suppress_tokens")) rules.suppressed = keys.ids("suppress_tokens");
  if (keys.find("begin_suppress_tokens")) rules.begin_suppressed = keys.ids("begin_suppress_tokens");
  if (keys.find("eos_token_id")) rules.ends = keys.ids("eos_token_id");
  const Ids forced = keys.ids("forced_bos_token_id");
  if (!forced.empty()) rules.forced_begin = forced.front();
  put_lengths(keys, rules);
}

Stop stop_of(const Keys& keys) {
  const Json* value = keys.find("early_stopping");
  if (value->is_boolean()) return value->get<bool>() ? Stop::full : Stop::heuristic;
  if (*value != "never") keys.refuse("early_stopping", "true, false or \"never\"");
  return Stop::exact;
}

// Keys that nothing here reads, with the values at which they change nothing.
const std::vector<std::pair<const char*, std::vector<Json>>>& keys_not_read() {
  static const std::vector<std::pair<const char*, std::vector<Json>>> list{
      {"num_beam_groups", {1}},
      {"diversity_penalty", {0}},
      {"penalty_alpha", {0}},
      {"typical_p", {1}},
      {"epsilon_cutoff", {0}},
      {"eta_cutoff", {0}},
      {"top_h", {}},
      {"sequence_bias", {}},
      {"encoder_repetition_penalty", {1}},
      {"renormalize_logits", {false}},
      {"exponential_decay_length_penalty", {}},
      {"guidance_scale", {1}},
      {"constraints", {}},
      {"force_words_ids", {}},
      {"stop_strings", {}},
      {"max_time", {}},
  };
  return list;
}

std::vector<std::string> unread_of(const Keys& keys, const std::string& name) {
  std::vector<std::string> out;
  for (const auto& [key, idle] : keys_not_read()) {
    const Json* value = keys.find(key);
    if (value == nullptr || std::find(idle.begin(), idle.end(), *value) != idle.end()) continue;
    out.push_back(fmt::format("{}: {} has no effect here", name, key));
  }
  if (keys.flag("do_sample") && keys.count("num_beams").value_or(1) > 1)
    out.push_back(fmt::format("{}: num_beams has no effect where do_sample is true", name));
  return out;
}

}  // namespace

GenerationConfig with_generation_keys(GenerationConfig how, std::string_view json, const std::string& name) {
  const Keys keys(json, name);
  if (keys.find("do_sample")) how.sample = keys.flag("do_sample");
  put_rules(keys, how.search.rules);
  put_rules(keys, how.sampling.rules);
  const std::optional<int64_t> results = keys.count("num_return_sequences", 1);
  put(keys.count("num_beams", 1), how.search.beam);
  put(results, how.search.n_best);
  if (const auto alpha = keys.number("length_penalty")) how.search.penalty = PowerPenalty{*alpha};
  if (keys.find("early_stopping")) how.search.stop = stop_of(keys);
  put(results, how.sampling.samples);
  put(keys.number("temperature"), how.sampling.temperature);
  put(keys.count("top_k"), how.sampling.top_k);
  put(keys.number("top_p"), how.sampling.top_p);
  put(keys.number("min_p"), how.sampling.min_p);
  const Ids start = keys.ids("decoder_start_token_id"), begin = keys.ids("bos_token_id");
  if (!begin.empty()) how.decoder_start = begin.front();
  if (!start.empty()) how.decoder_start = start.front();
  how.unread = unread_of(keys, name);
  return how;
}

GenerationConfig read_generation_config(std::string_view json, const std::string& name) {
  const WritingRules rules{.max_length = kDefaultWritten, .whole_text = true};
  const GenerationConfig missing{.search = {.beam = 1,
                                            .penalty = PowerPenalty{1},
                                            .stop = Stop::heuristic,
                                            .rules_on = RulesOn::log_p,
                                            .rules = rules},
                                 .sampling = {.top_k = kDefaultTopK, .rules = rules}};
  return with_generation_keys(missing, json, name);
}

namespace {

struct NamedText {
  std::string name, json = "{}";
};

// The first of the folder's files that is there.
NamedText first_of(const std::string& folder, std::initializer_list<const char*> files) {
  for (const char* file : files) {
    std::error_code ignored;
    const std::string path = folder + file;
    if (!std::filesystem::exists(path, ignored)) continue;
    const detail::FileBytes content = detail::read_file(path);
    return {path, {reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size()}};
  }
  return {.name = folder};
}

NamedText generation_text(const std::string& folder) {
  return first_of(folder, {"/generation_config.json", "/config.json"});
}

std::string prefix_of(const Keys& keys, const std::string& otherwise) {
  const Json* value = keys.find("prefix");
  if (value != nullptr && !value->is_string()) keys.refuse("prefix", "a text");
  return value == nullptr ? otherwise : value->get<std::string>();
}

}  // namespace

GenerationConfig load_generation_config(const std::string& folder) {
  const NamedText file = generation_text(folder);
  return read_generation_config(file.json, file.name);
}

std::map<std::string, TextTask> load_text_tasks(const std::string& folder) {
  const NamedText file = generation_text(folder), config = first_of(folder, {"/config.json"});
  const Keys keys(config.json, config.name);
  const std::string prefix = prefix_of(keys, "");
  std::map<std::string, TextTask> out{{"", {read_generation_config(file.json, file.name), prefix}}};
  const Json* tasks = keys.find("task_specific_params");
  if (tasks == nullptr) return out;
  if (!tasks->is_object()) keys.refuse("task_specific_params", "an object of tasks");
  for (const auto& [task, own] : tasks->items()) {
    const std::string name = fmt::format("{}: the task {}", config.name, printable(task));
    Json merged = Json::parse(file.json);
    if (own.is_object()) merged.update(own);
    out[task] = {read_generation_config(own.is_object() ? merged.dump() : own.dump(), name),
                 prefix_of(Keys(own.dump(), name), prefix)};
  }
  return out;
}

}  // namespace mh
