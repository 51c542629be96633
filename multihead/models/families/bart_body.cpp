// What BART and its kin share.
#include "multihead/models/families/bart_body.h"

#include <cmath>

#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/decoder_body.h"

namespace mh::detail {

namespace {

using Positions = InputEmbeddingOptions::Positions;

void defaults(Architecture& a, const BartKind& kind) {
  a.embedding = InputEmbeddingOptions{.vocabulary = kind.vocabulary,
                                      .positions = kind.learned_positions ? Positions::learned : Positions::sinusoidal,
                                      .max_positions = kind.positions,
                                      .offset = kind.offset,
                                      .sinusoids = kind.sinusoids,
                                      .dropout = 0.1F};
  if (kind.embedding_norm) a.embedding->norm = Norm::Options{};
  a.encoder = StackOptions{.block = {.width = kind.width,
                                     .heads = kind.heads,
                                     .feed_forward = kind.feed_forward,
                                     .norm = kind.norm,
                                     .middle = kind.middle,
                                     .dropout = 0.1F,
                                     .separate = true,
                                     .attention_dropout = 0,
                                     .middle_dropout = 0},
                           .layers = kind.layers,
                           .last_norm = kind.norm == NormPlace::before};
  a.decoder = a.encoder;
  a.cross_attention = true;
  a.tokens = kind.tokens;
}

// What both sides have of the keys that are read once.
void share(Architecture& a, bool scaled) {
  BlockOptions &from = a.encoder->block, &to = a.decoder->block;
  InputEmbeddingOptions& e = *a.embedding;
  to.width = from.width;
  to.middle = from.middle;
  to.dropout = from.dropout;
  to.attention_dropout = from.attention_dropout;
  to.middle_dropout = from.middle_dropout;
  e.width = from.width;
  e.dropout = from.dropout;
  e.scale = scaled ? std::sqrt(static_cast<float>(from.width)) : 1;
}

}  // namespace

void bart_keys(ConfigFields& fields, Architecture& a, const BartKind& kind, bool scaled) {
  if (fields.is_reading()) defaults(a, kind);
  BlockOptions& b = a.encoder->block;
  bool scales = fields.is_reading() ? scaled : a.embedding->scale != 1, both = true;
  fields.size("vocab_size", a.embedding->vocabulary);
  fields.size("d_model", b.width);
  fields.size("max_position_embeddings", a.embedding->max_positions);
  fields.size("encoder_layers", a.encoder->layers);
  fields.size("encoder_attention_heads", b.heads);
  fields.size("encoder_ffn_dim", b.feed_forward);
  fields.size("decoder_layers", a.decoder->layers);
  fields.size("decoder_attention_heads", a.decoder->block.heads);
  fields.size("decoder_ffn_dim", a.decoder->block.feed_forward);
  fields.activation("activation_function", b.middle);
  fields.number("dropout", b.dropout);
  fields.number("attention_dropout", *b.attention_dropout);
  fields.number("activation_dropout", *b.middle_dropout);
  fields.flag("scale_embedding", scales);
  if (!fields.is_reading()) return fields.flag("is_encoder_decoder", both);
  share(a, scales);
  a.decoder_embedding = a.embedding;
}

void bart_head(Architecture& a, bool output_bias) {
  if (a.head.kind == HeadKind::sequence) a.head = dense_head(a, HeadRows::last_end, Activation::tanh);
  if (a.head.kind == HeadKind::question) a.head = labels_head(a, HeadRows::all);
  if (a.head.kind != HeadKind::seq2seq_lm) return;
  a.head = next_token_head(a, HeadKind::seq2seq_lm);
  a.head.out_bias = output_bias;
}

std::vector<TensorName> bart_names(const Architecture& a) {
  std::vector<TensorName> out{{"shared", "embedding.tokens"},
                              {"encoder.embed_tokens", "embedding.tokens"},
                              {"decoder.embed_tokens", "decoder_embedding.tokens"}};
  if (a.head.kind == HeadKind::sequence) {
    out.push_back({"classification_head.dense", "head.dense"});
    out.push_back({"classification_head.out_proj", "head.out"});
  } else if (a.head.kind == HeadKind::question) {
    out.push_back({"qa_outputs", "head.out"});
  } else {
    out.push_back({"final_logits_bias", "head.out.bias", {.exact = true, .one_row = true}});
    out.push_back({"lm_head", "head.out"});
  }
  for (const char* stack : {"encoder", "decoder"}) {
    const bool writes = stack == std::string("decoder");
    const std::string file = std::string(stack) + ".", ours = file + "layers.{}.";
    const std::string embedding = writes ? "decoder_embedding." : "embedding.";
    if (a.embedding->positions == Positions::learned)
      out.push_back({file + "embed_positions", embedding + "positions"});
    out.push_back({file + "layernorm_embedding", embedding + "norm"});
    for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
      out.push_back({ours + "self_attn." + part, ours + "self_attn." + part});
      if (writes) out.push_back({ours + "encoder_attn." + part, ours + "multihead_attn." + part});
    }
    out.push_back({ours + "self_attn_layer_norm", ours + "norm1"});
    if (writes) out.push_back({ours + "encoder_attn_layer_norm", ours + "norm2"});
    out.push_back({ours + "fc1", ours + "linear1"});
    out.push_back({ours + "fc2", ours + "linear2"});
    out.push_back({ours + "final_layer_norm", ours + (writes ? "norm3" : "norm2")});
    out.push_back({file + "layer_norm", file + "norm"});
  }
  return out;
}

}  // namespace mh::detail
