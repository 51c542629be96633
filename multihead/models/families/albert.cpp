// ALBERT: layers that share their weights, over narrow embeddings brought to the model's width.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void albert_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  if (fields.is_reading()) {
    a.embedding->vocabulary = 30000;
    a.embedding->width = 128;
    a.embedding->projected = true;
    a.encoder->groups = 1;
    BlockOptions& b = a.encoder->block;
    b.width = 4096;
    b.heads = 64;
    b.feed_forward = 16384;
    b.middle = Middle::gelu_tanh;
    b.dropout = 0;
    b.attention_dropout = 0;
    a.head.dropout = 0.1F;
  }
  int64_t inner = 1;
  bert_keys(fields, a);
  fields.size("embedding_size", a.embedding->width);
  fields.count("type_vocab_size", a.embedding->types);
  fields.size("num_hidden_groups", a.encoder->groups);
  fields.size("inner_group_num", inner);
  if (inner != 1) fields.refuse("inner_group_num", "1");
  fields.number("classifier_dropout_prob", a.head.dropout);
  fields.require("position_embedding_type", {"absolute"});
  if (fields.is_reading()) settle_bert(a);
}

void albert_head(Architecture& a) {
  switch (a.head.kind) {
    case HeadKind::sequence:
    case HeadKind::choice: a.head = labels_head(a, HeadRows::pooled); break;
    case HeadKind::token:
    case HeadKind::question: a.head = labels_head(a, HeadRows::all); break;
    case HeadKind::masked_lm: a.head = masked_head(a, activation_of(a.encoder->block.middle)); break;
    default: break;
  }
  a.pooler = {.given = a.head.kind == HeadKind::none || a.head.rows == HeadRows::pooled};
}

std::vector<TensorName> albert_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names({.layer = "encoder.albert_layer_groups.{}.albert_layers.0.",
                                            .query = "attention.query",
                                            .key = "attention.key",
                                            .value = "attention.value",
                                            .out = "attention.dense",
                                            .norm1 = "attention.LayerNorm",
                                            .linear1 = "ffn",
                                            .linear2 = "ffn_output",
                                            .norm2 = "full_layer_layer_norm"});
  out.back().file = "pooler";
  append(out, {{"encoder.embedding_hidden_mapping_in", "embedding.projection"}});
  if (a.head.kind == HeadKind::masked_lm) {
    append(out, {{"predictions.dense", "head.dense"},
                 {"predictions.LayerNorm", "head.norm"},
                 {"predictions.bias", "head.out.bias", {.exact = true}},
                 {"predictions.decoder", "head.out"}});
  } else {
    append(out, {{a.head.kind == HeadKind::question ? "qa_outputs" : "classifier", "head.out"}});
  }
  return out;
}

}  // namespace

const Family kAlbert{.type = "albert",
                     .prefixes = {"albert."},
                     .classes = {{"AlbertForMaskedLM", HeadKind::masked_lm, "predictions.dense.weight"},
                                 {"AlbertForSequenceClassification", HeadKind::sequence, "classifier.weight"},
                                 {"AlbertForTokenClassification", HeadKind::token},
                                 {"AlbertForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                                 {"AlbertForMultipleChoice", HeadKind::choice},
                                 {"AlbertForPreTraining", HeadKind::masked_lm},
                                 {"AlbertModel", HeadKind::none}},
                     .keys = albert_keys,
                     .head = albert_head,
                     .names = albert_names,
                     .ignored = {"*position_ids"}};

}  // namespace mh::detail
