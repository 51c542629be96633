// DistilBERT: BERT without token types and pooler, under keys of its own.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void distilbert_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  InputEmbeddingOptions& e = *a.embedding;
  BlockOptions& b = a.encoder->block;
  if (fields.is_reading()) {
    e.types = 0;
    a.encoder->layers = 6;
    a.head.dropout = 0.2F;
  }
  bool stored_sinusoids = false;
  fields.size("vocab_size", e.vocabulary);
  fields.size("dim", b.width);
  fields.layers("n_layers", a.encoder->layers);
  fields.size("n_heads", b.heads);
  fields.size("hidden_dim", b.feed_forward);
  fields.activation("activation", b.middle);
  fields.number("dropout", b.dropout);
  fields.number("attention_dropout", *b.attention_dropout);
  fields.number("seq_classif_dropout", a.head.dropout);
  fields.size("max_position_embeddings", e.max_positions);
  if (fields.is_reading()) {
    fields.flag("sinusoidal_pos_embds", stored_sinusoids);  // they are stored: nothing to do
    settle_bert(a);
  }
}

void distilbert_head(Architecture& a) {
  switch (a.head.kind) {
    case HeadKind::sequence:
    case HeadKind::choice: a.head = dense_head(a, HeadRows::first, Activation::relu); break;
    case HeadKind::token:
    case HeadKind::question: a.head = labels_head(a, HeadRows::all); break;
    case HeadKind::masked_lm: a.head = masked_head(a, activation_of(a.encoder->block.middle)); break;
    default: break;
  }
}

std::vector<TensorName> distilbert_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names({.layer = "transformer.layer.{}.",
                                            .query = "attention.q_lin",
                                            .key = "attention.k_lin",
                                            .value = "attention.v_lin",
                                            .out = "attention.out_lin",
                                            .norm1 = "sa_layer_norm",
                                            .linear1 = "ffn.lin1",
                                            .linear2 = "ffn.lin2",
                                            .norm2 = "output_layer_norm"});
  switch (a.head.kind) {
    case HeadKind::masked_lm:
      append(out,
             {{"vocab_transform", "head.dense"}, {"vocab_layer_norm", "head.norm"}, {"vocab_projector", "head.out"}});
      break;
    case HeadKind::question: append(out, {{"qa_outputs", "head.out"}}); break;
    default: append(out, {{"pre_classifier", "head.dense"}, {"classifier", "head.out"}});
  }
  return out;
}

}  // namespace

const Family kDistilbert{
    .type = "distilbert",
    .prefixes = {"distilbert."},
    .classes = {{"DistilBertForMaskedLM", HeadKind::masked_lm, "vocab_transform.weight"},
                {"DistilBertForSequenceClassification", HeadKind::sequence, "pre_classifier.weight"},
                {"DistilBertForTokenClassification", HeadKind::token, "classifier.weight"},
                {"DistilBertForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                {"DistilBertForMultipleChoice", HeadKind::choice},
                {"DistilBertModel", HeadKind::none}},
    .keys = distilbert_keys,
    .head = distilbert_head,
    .names = distilbert_names,
    .ignored = {"*position_ids"}};

}  // namespace mh::detail
