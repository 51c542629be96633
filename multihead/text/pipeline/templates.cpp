// The reading of post-processors.
#include "multihead/text/pipeline/templates.h"

#include <limits>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/read/read_parts.h"

namespace mh::detail {
namespace {

using Kind = TemplatePart::Kind;
using SpecialIds = std::unordered_map<std::string_view, std::vector<int32_t>>;

int32_t token_id(int64_t id, const std::string& where, int32_t size) {
  check(id >= 0 && id < size, "{}: {} is not a token; expected ids from 0 to {}", where, id, size - 1);
  return static_cast<int32_t>(id);
}

// ["[SEP]", 102]
TemplatePart read_named(const JsonFields& fields, std::string_view name, int32_t size) {
  const simdjson::dom::array both = fields.array(name);
  int64_t id = 0;
  check(both.size() == 2 && both.at(0).is_string() && both.at(1).get(id) == simdjson::SUCCESS,
        "{}: '{}' is not a token with its id; expected [\"[SEP]\", 102]", fields.where(), name);
  return {Kind::special, 0, {token_id(id, fields.where(), size)}};
}

TemplatePart of_type(TemplatePart part, int32_t type) {
  part.type = type;
  return part;
}

Templates read_bert_template(const JsonElement& element, const std::string& where, int32_t size) {
  const JsonFields fields(element, where, {"type", "sep", "cls"});
  const TemplatePart cls = read_named(fields, "cls", size), sep = read_named(fields, "sep", size);
  return {{cls, {Kind::first, 0}, sep}, {cls, {Kind::first, 0}, sep, {Kind::second, 1}, of_type(sep, 1)}, {}};
}

std::vector<TrimOffsets> read_trim(const JsonFields& fields) {
  if (!fields.flag("trim_offsets", true)) return {};
  return {{.prefix_space = fields.flag("add_prefix_space", true)}};
}

Templates read_roberta_template(const JsonElement& element, const std::string& where, int32_t size) {
  const JsonFields fields(element, where, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  const TemplatePart cls = read_named(fields, "cls", size), sep = read_named(fields, "sep", size);
  return {{cls, {Kind::first, 0}, sep}, {cls, {Kind::first, 0}, sep, sep, {Kind::second, 0}, sep}, read_trim(fields)};
}

SpecialIds read_special_ids(const JsonFields& fields, int32_t size) {
  SpecialIds out;
  const std::string where = fields.where() + ": special_tokens";
  for (const auto& [name, value] : fields.object("special_tokens")) {
    const JsonFields special(value, where, {"id", "ids", "tokens"});
    std::vector<int32_t>& ids = out[name];
    for (const JsonElement element : special.array("ids")) {
      int64_t id = 0;
      check(element.get(id) == simdjson::SUCCESS, "{}: an id of {} is not a whole number", where, in_quotes(name));
      ids.push_back(token_id(id, where, size));
    }
  }
  return out;
}

TemplatePart read_part(const JsonElement& element, const std::string& where, const SpecialIds& specials) {
  const JsonFields part(element, where, {"Sequence", "SpecialToken"});
  const bool sequence = part.find("Sequence").has_value();
  const JsonFields fields(part.element(sequence ? "Sequence" : "SpecialToken"), where, {"id", "type_id"});
  const std::string_view id = fields.string("id");
  const int64_t type = fields.integer("type_id");
  check(type >= 0 && type <= std::numeric_limits<int32_t>::max(), "{}: 'type_id' is {}; expected 0 or more", where,
        type);
  TemplatePart out{.type = static_cast<int32_t>(type)};
  if (sequence) {
    check(id == "A" || id == "B", "{}: the sequence is {}; expected A or B", where, in_quotes(id));
    out.kind = id == "A" ? Kind::first : Kind::second;
    return out;
  }
  const auto found = specials.find(id);
  check(found != specials.end(), "{}: {} is not among the special_tokens", where, in_quotes(id));
  out.kind = Kind::special;
  out.ids = found->second;
  return out;
}

Templates read_template(const JsonElement& element, const std::string& where, int32_t size) {
  const JsonFields fields(element, where, {"type", "single", "pair", "special_tokens"});
  const SpecialIds specials = read_special_ids(fields, size);
  Templates out{{}, {}, {}};
  for (const JsonElement part : fields.array("single"))
    out.single.push_back(read_part(part, where + ": single", specials));
  for (const JsonElement part : fields.array("pair")) out.pair.push_back(read_part(part, where + ": pair", specials));
  for (const TemplatePart& part : out.single)
    check(part.kind != Kind::second, "{}: single: the sequence is B; expected A alone", where);
  return out;
}

}  // namespace

Templates read_templates(const JsonElement& element, const std::string& where, int32_t size) {
  const std::string_view type = json_type(element, where);
  if (type == "TemplateProcessing") return read_template(element, where, size);
  if (type == "BertProcessing") return read_bert_template(element, where, size);
  if (type == "RobertaProcessing") return read_roberta_template(element, where, size);
  if (type == "ByteLevel") {
    Templates out;
    out.trims = read_trim({element, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"}});
    return out;
  }
  if (type != "Sequence")
    refuse_part(where, type, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or Sequence");
  Templates out;
  int adding = 0;
  for (const JsonElement step : JsonFields(element, where, {"type", "processors"}).array("processors")) {
    if (json_type(step, where) == "Sequence") refuse_part(where, "Sequence", "none inside a Sequence");
    Templates read = read_templates(step, where, size);
    read.trims.insert(read.trims.begin(), out.trims.begin(), out.trims.end());
    if (json_type(step, where) == "ByteLevel") {
      if (adding > 0) refuse_part(where, "ByteLevel", "it before the template");
      out.trims = std::move(read.trims);
      continue;
    }
    if (++adding > 1) refuse_part(where, "Sequence", "one with a single template");
    out = std::move(read);
  }
  return out;
}

int64_t count_special(const std::vector<TemplatePart>& parts) {
  int64_t out = 0;
  for (const TemplatePart& part : parts)
    if (part.kind == Kind::special) out += static_cast<int64_t>(part.ids.size());
  return out;
}

}  // namespace mh::detail
