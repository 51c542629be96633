// The list of families, and what every config.json has whatever its family.
#include "multihead/models/pretrained/families.h"

#include <algorithm>
#include <array>

#include "multihead/base/printable.h"
#include "multihead/models/families/list.h"

namespace mh {

namespace {

std::string known_types() {
  std::string out;
  for (const Family* family : families()) out += (out.empty() ? "" : ", ") + std::string(family->type);
  return out;
}

// Keys of every family.
void shared_keys(ConfigFields& fields, Architecture& a) {
  fields.id("pad_token_id", a.tokens.pad);
  fields.id("bos_token_id", a.tokens.begin);
  fields.ids("eos_token_id", a.tokens.ends);
  fields.id("decoder_start_token_id", a.tokens.decoder_start);
  if (fields.is_reading() ? fields.has("id2label") || fields.has("num_labels") : !a.labels.empty())
    fields.labels(a.labels);
  if (fields.is_reading() || !a.problem_type.empty()) fields.text("problem_type", a.problem_type);
}

ConfigFields all_keys(const Family& family, const Architecture& of) {
  ConfigFields fields = ConfigFields::writing();
  Architecture a = of;
  fields.text("model_type", a.family);
  std::vector<std::string> classes{a.model_class};
  if (!a.model_class.empty()) fields.texts("architectures", classes);
  family.keys(fields, a);
  shared_keys(fields, a);
  return fields;
}

}  // namespace

std::string_view name_of(HeadKind kind) {
  switch (kind) {
    case HeadKind::none: return "body";
    case HeadKind::masked_lm: return "masked language model";
    case HeadKind::causal_lm: return "language model";
    case HeadKind::seq2seq_lm: return "text-to-text model";
    case HeadKind::sequence: return "text classifier";
    case HeadKind::token: return "token classifier";
    case HeadKind::question: return "question answerer";
    case HeadKind::choice: return "chooser among several texts";
    case HeadKind::image: return "image classifier";
    case HeadKind::contrastive: return "text and image comparer";
  }
  return "model";
}

std::span<const Family* const> families() {
  static const std::vector<const Family*> all = detail::family_list();
  return all;
}

const Family& family_of(std::string_view type) {
  for (const Family* family : families())
    if (family->type == type) return *family;
  fail(ErrorKind::unsupported, "model_type is {}; expected one of {}", printable(type), known_types());
}

Architecture read_config(std::string_view json, const std::string& name, const std::string& as) {
  ConfigFields fields = ConfigFields::reading(json, name);
  Architecture a;
  a.family = as;
  fields.text("model_type", a.family);
  if (a.family.empty())
    fail(ErrorKind::unsupported, "{}: has no model_type; expected one of {}, or to be told which", printable_path(name),
         known_types());
  const Family& family = family_of(a.family);
  std::vector<std::string> classes;
  fields.texts("architectures", classes);
  if (!classes.empty()) a.model_class = classes.front();
  family.keys(fields, a);
  shared_keys(fields, a);
  if (a.labels.empty()) a.labels = {"LABEL_0", "LABEL_1"};
  a.config = json;
  return a;
}

HeadKind head_of(const Family& family, const Architecture& a, const NamedTensors& file) {
  for (const HeadClass& each : family.classes)
    if (each.name == a.model_class) return each.kind;
  if (!a.model_class.empty()) {
    std::string known;
    for (const HeadClass& each : family.classes) known += (known.empty() ? "" : ", ") + std::string(each.name);
    fail(ErrorKind::unsupported, "architectures names {}; expected one of {}", printable(a.model_class), known);
  }
  for (const HeadClass& each : family.classes)
    if (!each.marker.empty() && file.count(std::string(each.marker)) != 0) return each.kind;
  return HeadKind::none;
}

std::string write_config(const Architecture& a) {
  const Family& family = family_of(a.family);
  const ConfigFields now = all_keys(family, a);
  if (a.config.empty()) return now.written();
  Architecture before = read_config(a.config, "config.json", a.family);
  before.head.kind = a.head.kind;
  family.head(before);
  return now.written_over(a.config, all_keys(family, before));
}

}  // namespace mh
