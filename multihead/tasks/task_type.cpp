// The rows of the table in one place.
#include "multihead/tasks/task_type.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/io/file_bytes.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/tasks/models/text_model.h"
#include "multihead/tasks/pixels/sound_form.h"

namespace mh {

const std::vector<TaskType>& task_types() {
  static const std::vector<TaskType> types{translation_type(), language_model_type(), classify_type(),
                                           tag_type(),         answer_type(),         recommend_type(),
                                           image_class_type(), speech_class_type()};
  return types;
}

const TaskType& task_type(TaskKind kind) {
  for (const TaskType& type : task_types())
    if (type.kind == kind) return type;
  fail(ErrorKind::internal, "task_type: {} has no row", static_cast<int>(kind));
}

namespace {

// The task of a folder of Hugging Face's, by the class that its config.json names.
std::string pretrained_kind(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  const auto config = nlohmann::json::parse(text, nullptr, false);
  if (!config.is_object() || !config.contains("architectures") || !config["architectures"].is_array()) return "";
  for (const auto& each : config["architectures"]) {
    const std::string name = each.is_string() ? each.get<std::string>() : "";
    if (name.ends_with("ForSequenceClassification")) return "classify";
    if (name.ends_with("ForTokenClassification")) return "tag";
    if (name.ends_with("ForQuestionAnswering")) return "answer";
    if (name.find("ForImageClassification") != std::string::npos) return "image_class";
  }
  return "";
}

}  // namespace

std::string model_kind(const std::string& path) {
  const Safetensors file = read_safetensors(path, {.verify = false});
  const auto text = file.metadata.find(kConfigKey);
  if (text == file.metadata.end()) return "";
  const auto config = nlohmann::json::parse(text->second, nullptr, false);
  if (!config.is_object() || !config.contains("kind") || !config["kind"].is_string()) return "";
  return config["kind"].get<std::string>();
}

std::string model_kind_of_folder(const std::string& folder) {
  std::error_code ignored;
  if (is_pretrained_folder(folder)) {
    const std::string kind = pretrained_kind(folder + "/config.json");
    const bool hears = kind == "image_class" && std::filesystem::exists(folder + "/" + kSoundFile, ignored);
    return hears ? "speech_class" : kind;
  }
  const std::string path = folder + "/model.safetensors";
  return std::filesystem::exists(path, ignored) ? model_kind(path) : "";
}

}  // namespace mh
