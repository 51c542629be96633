// What the families of decoders share: heads, their names, and rotary keys.
#pragma once

#include <string>
#include <vector>

#include "multihead/models/pretrained/families.h"

namespace mh::detail {

// The next token for every row, by the embedding's matrix unless the file has another.
HeadPlan next_token_head(const Architecture& a, HeadKind kind);
// Fills in a.head of a decoder alone: the next token, labels of a text by its last row, labels of tokens, answers.
void decoder_head(Architecture& a, bool label_bias);
// `output`: what the file calls the next token's matrix; `token`: what it calls that of the labels of tokens.
std::vector<TensorName> decoder_head_names(const Architecture& a, const std::string& output, const std::string& token);

// Whether the head's matrix is the embedding's: said where nothing was loaded.
void tie_key(ConfigFields& fields, const Architecture& a);

struct RotaryKeys {
  float base = 10000, share = 1;  // share: of a head, the elements that are turned
};
// rope_parameters, or the older keys that stand for its parts. Refuses rotations that are scaled.
void rotary_keys(ConfigFields& fields, RotaryKeys& rotary, std::string_view old_base, std::string_view old_share);

// "silu" is swiglu, and so on. Throws: io for an activation that has no gated form.
Middle gated_middle(const ConfigFields& fields, std::string_view key, Middle plain);
Middle plain_middle(Middle gated);

}  // namespace mh::detail
