// Tells our own folders and Hugging Face's, and what they are for.
#include "multihead/models/pretrained/folder_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/printable.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/models/pretrained/read_folder.h"

namespace mh {

namespace {

bool stands_at(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

FolderFacts facts_of_config(const std::string& folder, const std::string& as) {
  const FolderParts read = read_folder(folder, as, {.verify = false});
  const Architecture& a = read.architecture;
  FolderFacts facts{.layout = FolderFacts::Layout::hugging_face,
                    .kind = a.family,
                    .model_class = a.model_class,
                    .head = a.head.kind,
                    .sentence_transformer = stands_at(folder + "/modules.json"),
                    .guessed = read.guessed};
  const auto config = nlohmann::json::parse(a.config, nullptr, false);
  const auto tasks = config.find("task_specific_params");
  if (tasks == config.end() || !tasks->is_object()) return facts;
  for (const auto& [task, own] : tasks->items()) {
    facts.names_summaries |= task == "summarization";
    facts.names_translations |= task.starts_with("translation");
  }
  return facts;
}

FolderFacts facts_of_ours(const std::string& path) {
  const Safetensors file = read_safetensors(path, {.verify = false});
  const auto config = file.metadata.find(kConfigKey);
  if (config == file.metadata.end())
    fail(ErrorKind::io, "{}: has no config in its metadata and no config.json beside it; expected either",
         printable_path(path));
  const auto parsed = nlohmann::json::parse(config->second, nullptr, false);
  const std::string kind = parsed.is_object() ? parsed.value("kind", std::string("transformer")) : std::string();
  constexpr std::array kKinds{"transformer", "language_model", "rnn", "lstm", "gru", "classify", "tag", "recommend"};
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
    fail(ErrorKind::unsupported, "{}: its kind is {}; expected one of {}", printable_path(path), printable(kind),
         fmt::join(kKinds, ", "));
  const HeadKind head = kind == "language_model" ? HeadKind::causal_lm
                        : kind == "recommend"    ? HeadKind::causal_lm
                        : kind == "classify"     ? HeadKind::sequence
                        : kind == "tag"          ? HeadKind::token
                                                 : HeadKind::seq2seq_lm;
  return {.kind = kind, .head = head};
}

// Of a text-to-text model. One that names both kinds of task, as T5, does either behind a prefix.
std::string_view verb_of_rewriting(const FolderFacts& facts) {
  if (facts.layout == FolderFacts::Layout::ours) return "translate";
  if (facts.names_translations != facts.names_summaries && facts.kind != "t5" && facts.kind != "mt5")
    return facts.names_summaries ? "summarise" : "translate";
  if (facts.kind == "marian" || facts.kind == "m2m_100" || facts.kind == "mbart") return "translate";
  return facts.kind == "pegasus" ? "summarise" : "generate";
}

}  // namespace

FolderFacts folder_facts(const std::string& folder, const std::string& as) {
  const std::string config = folder + "/config.json", weights = folder + "/model.safetensors";
  if (stands_at(config)) return facts_of_config(folder, as);
  if (stands_at(weights)) return facts_of_ours(weights);
  fail(ErrorKind::io, "{} {}; expected a folder with model.safetensors", printable_path(folder),
       stands_at(folder) ? "holds no model" : "is not there");
}

std::string_view FolderFacts::verb() const {
  if (layout == Layout::ours && kind == "recommend") return "recommend";
  switch (head) {
    case HeadKind::sequence:
    case HeadKind::image: return "classify";
    case HeadKind::token: return "tag";
    case HeadKind::question: return "answer";
    case HeadKind::masked_lm: return sentence_transformer ? "embed" : "fill";
    case HeadKind::causal_lm: return "generate";
    case HeadKind::seq2seq_lm: return verb_of_rewriting(*this);
    case HeadKind::choice:
    case HeadKind::contrastive: return "";
    case HeadKind::none: break;
  }
  return "embed";
}

std::string FolderFacts::advice() const {
  return verb().empty() ? "no verb runs it, mh::Pretrained and forward() in Python do"
                        : fmt::format("use `multihead {}`", verb());
}

std::string FolderFacts::description() const { return fmt::format("{} {}", kind, name_of(head)); }

std::string refusal_of_folder(const std::string& folder, std::string_view expected) {
  const FolderFacts facts = folder_facts(folder);
  return fmt::format("{}: is a {}; expected a {}: {}", printable_path(folder), facts.description(), expected,
                     facts.advice());
}

}  // namespace mh
