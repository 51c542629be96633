// ELECTRA: BERT with narrow embeddings; generators and discriminators.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

constexpr std::string_view kDetector = "ElectraForPreTraining";

void electra_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  if (fields.is_reading()) {
    a.embedding->width = 128;
    a.encoder->block.width = 256;
    a.encoder->block.heads = 4;
    a.encoder->block.feed_forward = 1024;
  }
  bert_keys(fields, a);
  fields.size("embedding_size", a.embedding->width);
  fields.count("type_vocab_size", a.embedding->types);
  fields.number("classifier_dropout", a.head.dropout);
  fields.require("position_embedding_type", {"absolute"});
  fields.require("is_decoder", false);
  if (fields.is_reading()) settle_bert(a);
}

void electra_head(Architecture& a) {
  switch (a.head.kind) {
    case HeadKind::sequence: a.head = dense_head(a, HeadRows::first, Activation::gelu); break;
    case HeadKind::token:
      if (a.model_class == kDetector) {
        a.head = dense_head(a, HeadRows::all, activation_of(a.encoder->block.middle));
        a.head.outputs = 1;
        a.head.dropout = 0;
      } else {
        a.head = labels_head(a, HeadRows::all);
      }
      break;
    case HeadKind::question: a.head = labels_head(a, HeadRows::all); break;
    case HeadKind::masked_lm: a.head = masked_head(a, Activation::gelu); break;
    default: break;
  }
}

std::vector<TensorName> electra_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names();
  append(out, {{"embeddings_project", "embedding.projection"}});
  switch (a.head.kind) {
    case HeadKind::masked_lm:
      append(out, {{"generator_predictions.dense", "head.dense"},
                   {"generator_predictions.LayerNorm", "head.norm"},
                   {"generator_lm_head", "head.out"}});
      break;
    case HeadKind::sequence:
      append(out, {{"classifier.dense", "head.dense"}, {"classifier.out_proj", "head.out"}});
      break;
    case HeadKind::question: append(out, {{"qa_outputs", "head.out"}}); break;
    default:
      if (a.model_class == kDetector) {
        append(out, {{"discriminator_predictions.dense", "head.dense"},
                     {"discriminator_predictions.dense_prediction", "head.out"}});
      } else {
        append(out, {{"classifier", "head.out"}});
      }
  }
  return out;
}

}  // namespace

const Family kElectra{
    .type = "electra",
    .prefixes = {"electra."},
    .classes = {{"ElectraForMaskedLM", HeadKind::masked_lm, "generator_predictions.dense.weight"},
                {"ElectraForSequenceClassification", HeadKind::sequence, "classifier.out_proj.weight"},
                {"ElectraForTokenClassification", HeadKind::token, "classifier.weight"},
                {"ElectraForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                {kDetector, HeadKind::token},
                {"ElectraModel", HeadKind::none}},
    .keys = electra_keys,
    .head = electra_head,
    .names = electra_names,
    .ignored = {"*position_ids"}};

}  // namespace mh::detail
