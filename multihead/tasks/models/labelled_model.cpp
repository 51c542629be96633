// Between a model with labels and its folder.
#include "multihead/tasks/models/labelled_model.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/tasks/tokenizer_limit.h"

namespace mh {

namespace {

struct PoolingName {
  Pooling pooling;
  const char* name;
};
constexpr PoolingName kPoolings[] = {{Pooling::mean, "mean"}, {Pooling::first, "first"}, {Pooling::none, "none"}};

Pooling pooling_of(const std::string& name, const std::string& path) {
  for (const PoolingName& each : kPoolings)
    if (name == each.name) return each.pooling;
  fail(ErrorKind::io, "{}: the model's pooling is {}; expected mean, first or none", path, printable(name));
}

struct Described {
  SequenceClassifierConfig config{};
  Labels labels{};
};

// What the metadata say; their config becomes one that config_from_json reads.
Described take_description(std::map<std::string, std::string>& metadata, const std::string& path,
                           const std::string& kind) {
  const auto text = metadata.find(kConfigKey);
  auto json =
      text == metadata.end() ? nlohmann::ordered_json() : nlohmann::ordered_json::parse(text->second, nullptr, false);
  if (!json.is_object() || json.value("kind", nlohmann::ordered_json()) != kind)
    fail(ErrorKind::io, "{}",
         refusal_of_folder(std::filesystem::path(path).parent_path(),
                           name_of(kind == "classify" ? HeadKind::sequence : HeadKind::token)));
  if (!json.contains("labels")) fail(ErrorKind::io, "{}: its config names no labels", printable_path(path));
  Described out;
  try {
    out.labels = Labels(json.at("labels").get<std::vector<std::string>>());
    out.config.types = json.at("types").get<int64_t>();
    out.config.head.pooling = pooling_of(json.at("pooling").get<std::string>(), path);
    out.config.labels = label_kind_of(json.value("problem_type", std::string()));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::io, "{}: the model's config is damaged ({})", path, error.what());
  }
  out.config.classes = out.labels.size();
  for (const char* key : {"labels", "types", "pooling", "problem_type"}) json.erase(key);
  json["kind"] = "transformer";  // whose keys the rest are
  metadata[kConfigKey] = json.dump();
  out.config.encoder = config_from_json(json.dump(), path);
  const int64_t least = out.config.labels == LabelKind::one ? 2 : 1;
  check(out.config.classes >= least && out.config.types >= 1 && out.config.types <= 2,
        "{}: a model of {} classes and {} types of tokens; expected {} or more, and 1 or 2", path, out.config.classes,
        out.config.types, least);
  return out;
}

SequenceClassifier model_of(Safetensors& file, const Described& described, const std::string& path) {
  const auto store = std::make_shared<ParamStore>(std::move(file.tensors));
  SequenceClassifier model(described.config, store);
  check(store->unused().empty(), "{}: holds '{}', for which the model has no use", path,
        store->unused().empty() ? "" : store->unused().front());
  return model;
}

}  // namespace

namespace {

// What AutoTokenizer needs beside tokenizer.json.
std::string tokenizer_config(const Tokenizer& tokenizer, int64_t max_length) {
  nlohmann::ordered_json out{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", max_length}};
  constexpr std::pair<const char*, const char*> kSpecials[] = {
      {"pad_token", "[PAD]"}, {"unk_token", "[UNK]"},   {"cls_token", "[CLS]"},
      {"sep_token", "[SEP]"}, {"mask_token", "[MASK]"}, {"pad_token", "<pad>"},
      {"bos_token", "<s>"},   {"eos_token", "</s>"},    {"unk_token", "<unk>"}};
  for (const auto& [key, token] : kSpecials)
    if (tokenizer.id(token) && !out.contains(key)) out[key] = token;
  return out.dump(2) + "\n";
}

LabelledModel load_pretrained_model(const std::string& folder, const std::string& kind) {
  Pretrained model = Pretrained::load(folder);
  const Architecture& a = model.architecture();
  const HeadKind wanted = kind == "classify" ? HeadKind::sequence : HeadKind::token;
  if (a.head.kind != wanted)
    fail(ErrorKind::io, "{}: is a {} {}; expected a {}: {}", printable_path(folder), a.family, name_of(a.head.kind),
         name_of(wanted), folder_facts(folder).advice());
  Labels labels = detail::labels_of_folder(model, folder);
  TextModel text_model(std::move(model));
  const int64_t longest = std::min(text_model.max_length(), tokenizer_limit(folder));
  return {Tokenizer::load(folder), std::move(text_model), std::move(labels), longest};
}

}  // namespace

void save_labelled_model(const std::string& folder, const std::string& kind, const TextModel& model,
                         const Labels& labels, const Tokenizer& tokenizer) {
  if (model.pretrained() != nullptr) {
    model.pretrained()->save(folder);
    write_durably(folder + "/tokenizer_config.json", tokenizer_config(tokenizer, model.max_length()));
    return;
  }
  const SequenceClassifierConfig& config = model.own()->config();
  auto json = nlohmann::ordered_json::parse(config_to_json(config.encoder));
  json["kind"] = kind;
  json["types"] = config.types;
  for (const PoolingName& each : kPoolings)
    if (config.head.pooling == each.pooling) json["pooling"] = each.name;
  json["labels"] = labels.names();
  if (config.labels != LabelKind::one) json["problem_type"] = problem_type_of(config.labels);
  write_safetensors(
      folder + "/model.safetensors",
      {.tensors = model.own()->params().values(),
       .metadata = {{kConfigKey, json.dump()}, {"format", "pt"}, {kTokenizerKey, tokenizer_hash(tokenizer)}}});
}

StartModel start_of_labelled_model(const std::string& path, const std::string& kind) {
  Safetensors file = read_safetensors(path);
  const Described described = take_description(file.metadata, path, kind);
  const SequenceClassifier model = model_of(file, described, path);
  return {.config = described.config.encoder, .weights = model.params().values(), .metadata = file.metadata};
}

LabelledModel load_labelled_model(const std::string& folder, const std::string& kind) {
  if (is_pretrained_folder(folder)) return load_pretrained_model(folder, kind);
  const std::string path = folder + "/model.safetensors", tokenizer_path = folder + "/tokenizer.json";
  Safetensors file = read_safetensors(path);
  const Described described = take_description(file.metadata, path, kind);
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_path);
  check_tokenizer({tokenizer_path, tokenizer}, path, file.metadata);
  return {tokenizer, TextModel(model_of(file, described, path)), described.labels, described.config.encoder.max_length};
}

}  // namespace mh
