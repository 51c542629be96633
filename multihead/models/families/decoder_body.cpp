// What the families of decoders share.
#include "multihead/models/families/decoder_body.h"

#include "multihead/models/families/bert_body.h"

namespace mh::detail {

HeadPlan next_token_head(const Architecture& a, HeadKind kind) {
  const InputEmbeddingOptions& words = a.decoder_embedding ? *a.decoder_embedding : *a.embedding;
  return {.kind = kind, .outputs = words.vocabulary, .out_bias = false, .out_is_embedding = true};
}

void decoder_head(Architecture& a, bool label_bias) {
  switch (a.head.kind) {
    case HeadKind::causal_lm: a.head = next_token_head(a, HeadKind::causal_lm); break;
    case HeadKind::sequence:
      a.head = labels_head(a, HeadRows::last_text);
      a.head.out_bias = label_bias;
      break;
    case HeadKind::token:
    case HeadKind::question: a.head = labels_head(a, HeadRows::all); break;
    default: break;
  }
}

std::vector<TensorName> decoder_head_names(const Architecture& a, const std::string& output, const std::string& token) {
  switch (a.head.kind) {
    case HeadKind::causal_lm: return {{output, "head.out"}};
    case HeadKind::question: return {{"qa_outputs", "head.out"}};
    case HeadKind::token: return {{token, "head.out"}};
    default: return {{"score", "head.out"}};
  }
}

void tie_key(ConfigFields& fields, const Architecture& a) {
  if (fields.is_reading() || !a.config.empty()) return;
  bool tied = a.head.out_is_embedding;
  fields.flag("tie_word_embeddings", tied);
}

void rotary_keys(ConfigFields& fields, RotaryKeys& rotary, std::string_view old_base, std::string_view old_share) {
  fields.number(old_base, rotary.base);
  if (!old_share.empty()) fields.number(old_share, rotary.share);
  if (fields.is_reading()) {
    ConfigFields scaling = fields.inside("rope_scaling");
    scaling.require("rope_type", {"default"});
    scaling.require("type", {"default"});
  }
  ConfigFields parameters = fields.inside("rope_parameters");
  parameters.number("rope_theta", rotary.base);
  if (!old_share.empty()) parameters.number("partial_rotary_factor", rotary.share);
  if (fields.is_reading()) {
    parameters.require("rope_type", {"default"});
  } else {
    std::string type = "default";
    parameters.text("rope_type", type);
  }
}

Middle gated_middle(const ConfigFields& fields, std::string_view key, Middle plain) {
  if (plain == Middle::silu) return Middle::swiglu;
  if (plain == Middle::gelu) return Middle::geglu;
  if (plain == Middle::gelu_tanh) return Middle::geglu_tanh;
  fields.refuse(key, "silu or a gelu, which have a gated form here");
}

Middle plain_middle(Middle gated) {
  return gated == Middle::swiglu ? Middle::silu : gated == Middle::geglu ? Middle::gelu : Middle::gelu_tanh;
}

}  // namespace mh::detail
