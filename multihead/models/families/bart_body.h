// What BART and its kin share: an encoder and a decoder of one width, named alike.
#pragma once

#include <vector>

#include "multihead/models/pretrained/families.h"

namespace mh::detail {

// Where they differ.
struct BartKind {
  NormPlace norm = NormPlace::after;  // with norms before, each stack ends with one
  bool embedding_norm = false;        // layernorm_embedding, on both sides
  bool learned_positions = false;     // else sinusoids
  SinusoidLayout sinusoids = SinusoidLayout::halves;
  int64_t offset = 0;  // of positions
  Middle middle = Middle::gelu;
  int64_t vocabulary = 50265, positions = 1024, layers = 12, width = 1024, heads = 16, feed_forward = 4096;
  SpecialTokens tokens{};
};

// The keys of all of them. `scaled`: scale_embedding where the file does not say.
void bart_keys(ConfigFields& fields, Architecture& a, const BartKind& kind, bool scaled);
void bart_head(Architecture& a, bool output_bias);
std::vector<TensorName> bart_names(const Architecture& a);

}  // namespace mh::detail
