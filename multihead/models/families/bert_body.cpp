// What bert and its kin share.
#include "multihead/models/families/bert_body.h"

namespace mh::detail {

void begin_bert(ConfigFields& fields, Architecture& a) {
  if (!fields.is_reading()) return;
  a.embedding = InputEmbeddingOptions{.vocabulary = 30522,
                                      .types = 2,
                                      .positions = InputEmbeddingOptions::Positions::learned,
                                      .max_positions = 512,
                                      .norm = Norm::Options{.eps = 1e-12F},
                                      .dropout = 0.1F};
  a.encoder = StackOptions{.block = {.width = 768,
                                     .heads = 12,
                                     .feed_forward = 3072,
                                     .norm = NormPlace::after,
                                     .middle = Middle::gelu,
                                     .dropout = 0.1F,
                                     .normalisation = {.eps = 1e-12F},
                                     .separate = true,
                                     .attention_dropout = 0.1F,
                                     .middle_dropout = 0},
                           .layers = 12,
                           .last_norm = false};
  a.tokens.pad = 0;
  a.head.dropout = -1;
}

void bert_keys(ConfigFields& fields, Architecture& a) {
  InputEmbeddingOptions& e = *a.embedding;
  BlockOptions& b = a.encoder->block;
  fields.size("vocab_size", e.vocabulary);
  fields.size("hidden_size", b.width);
  fields.layers("num_hidden_layers", a.encoder->layers);
  fields.size("num_attention_heads", b.heads);
  fields.size("intermediate_size", b.feed_forward);
  fields.activation("hidden_act", b.middle);
  fields.number("hidden_dropout_prob", b.dropout);
  fields.number("attention_probs_dropout_prob", *b.attention_dropout);
  fields.number("layer_norm_eps", b.normalisation.eps);
  int64_t rows = e.max_positions + e.offset;
  fields.size("max_position_embeddings", rows);
  e.max_positions = rows - e.offset;
}

void settle_bert(Architecture& a) {
  InputEmbeddingOptions& e = *a.embedding;
  const BlockOptions& b = a.encoder->block;
  if (e.width == 0) e.width = b.width;
  e.output = b.width;
  e.norm->eps = b.normalisation.eps;
  e.dropout = b.dropout;
  if (a.head.dropout < 0) a.head.dropout = b.dropout;
}

void append(std::vector<TensorName>& rows, const std::vector<TensorName>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

std::vector<TensorName> bert_names(const BertNames& n) {
  const std::string ours = "encoder.layers.{}.";
  return {{"embeddings.word_embeddings", "embedding.tokens"},
          {"embeddings.position_embeddings", "embedding.positions"},
          {"embeddings.token_type_embeddings", "embedding.types"},
          {"embeddings.LayerNorm", "embedding.norm"},
          {n.layer + n.query, ours + "self_attn.q_proj"},
          {n.layer + n.key, ours + "self_attn.k_proj"},
          {n.layer + n.value, ours + "self_attn.v_proj"},
          {n.layer + n.out, ours + "self_attn.out_proj"},
          {n.layer + n.norm1, ours + "norm1"},
          {n.layer + n.linear1, ours + "linear1"},
          {n.layer + n.linear2, ours + "linear2"},
          {n.layer + n.norm2, ours + "norm2"},
          {"pooler.dense", "pooler.dense"}};
}

HeadPlan labels_head(const Architecture& a, HeadRows rows) {
  const HeadKind kind = a.head.kind;
  const int64_t labels = kind == HeadKind::question ? 2
                         : kind == HeadKind::choice ? 1
                                                    : static_cast<int64_t>(a.labels.size());
  return {.kind = kind, .rows = rows, .outputs = labels, .dropout = a.head.dropout};
}

HeadPlan dense_head(const Architecture& a, HeadRows rows, Activation activation) {
  HeadPlan plan = labels_head(a, rows);
  plan.dense = true;
  plan.activation = activation;
  return plan;
}

HeadPlan masked_head(const Architecture& a, Activation activation) {
  return {.kind = HeadKind::masked_lm,
          .outputs = a.embedding->vocabulary,
          .dense = true,
          .dense_width = a.embedding->width,
          .activation = activation,
          .norm = a.encoder->block.normalisation,
          .out_is_embedding = true,
          .dropout = a.head.dropout};
}

}  // namespace mh::detail
