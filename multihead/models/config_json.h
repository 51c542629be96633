// A model's sizes and choices as JSON: what stands in the file of its weights, under the metadata key "config".
#pragma once

#include <string>
#include <string_view>

#include "multihead/models/transformer.h"

namespace mh {

inline constexpr const char* kConfigKey = "config";

// {"kind": "transformer", "vocabulary": 8000, …}: the keys of a training config's [model] table, and the special
// tokens.
std::string config_to_json(const TransformerConfig& config);

// A missing key takes its default. `name` stands in the sentences. Throws: io where the text is no JSON object, has a
// key that is not known, a value of another type or outside its range.
TransformerConfig config_from_json(std::string_view json, const std::string& name);

}  // namespace mh
