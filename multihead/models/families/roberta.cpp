// RoBERTa, XLM-RoBERTa and CamemBERT: BERT with positions after padding's id, and heads of their own.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

void offset_positions(ConfigFields& fields, Architecture& a) {
  if (!fields.is_reading()) return;
  a.tokens.pad = 1;
  fields.id("pad_token_id", a.tokens.pad);
  InputEmbeddingOptions& e = *a.embedding;
  e.offset = a.tokens.pad + 1;
  e.max_positions -= e.offset;
  if (e.max_positions < 1) fields.refuse("max_position_embeddings", fmt::format("more than {}", e.offset));
}

void roberta_head(Architecture& a) {
  switch (a.head.kind) {
    case HeadKind::sequence: a.head = dense_head(a, HeadRows::first, Activation::tanh); break;
    case HeadKind::token:
    case HeadKind::question: a.head = labels_head(a, HeadRows::all); break;
    case HeadKind::choice: a.head = labels_head(a, HeadRows::pooled); break;
    case HeadKind::masked_lm: a.head = masked_head(a, Activation::gelu); break;
    default: break;
  }
  a.pooler = {.given = a.head.kind == HeadKind::none || a.head.rows == HeadRows::pooled};
}

std::vector<TensorName> roberta_head_names(const Architecture& a) {
  switch (a.head.kind) {
    case HeadKind::masked_lm:
      return {{"lm_head.dense", "head.dense"},
              {"lm_head.layer_norm", "head.norm"},
              {"lm_head.bias", "head.out.bias", {.exact = true}},
              {"lm_head.decoder", "head.out"}};
    case HeadKind::sequence: return {{"classifier.dense", "head.dense"}, {"classifier.out_proj", "head.out"}};
    case HeadKind::question: return {{"qa_outputs", "head.out"}};
    default: return {{"classifier", "head.out"}};
  }
}

namespace {

void roberta_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  if (fields.is_reading()) a.embedding->vocabulary = 50265;
  bert_keys(fields, a);
  fields.count("type_vocab_size", a.embedding->types);
  fields.number("classifier_dropout", a.head.dropout);
  fields.require("position_embedding_type", {"absolute"});
  fields.require("is_decoder", false);
  offset_positions(fields, a);
  if (fields.is_reading()) settle_bert(a);
}

std::vector<TensorName> roberta_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names();
  append(out, roberta_head_names(a));
  return out;
}

Family named(std::string_view type, std::vector<HeadClass> classes) {
  return {.type = type,
          .prefixes = {"roberta."},
          .classes = std::move(classes),
          .keys = roberta_keys,
          .head = roberta_head,
          .names = roberta_names,
          .ignored = {"*position_ids"}};
}

}  // namespace

const Family kRoberta =
    named("roberta", {{"RobertaForMaskedLM", HeadKind::masked_lm, "lm_head.dense.weight"},
                      {"RobertaForSequenceClassification", HeadKind::sequence, "classifier.out_proj.weight"},
                      {"RobertaForTokenClassification", HeadKind::token, "classifier.weight"},
                      {"RobertaForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                      {"RobertaForMultipleChoice", HeadKind::choice},
                      {"RobertaModel", HeadKind::none}});
const Family kXlmRoberta =
    named("xlm-roberta", {{"XLMRobertaForMaskedLM", HeadKind::masked_lm, "lm_head.dense.weight"},
                          {"XLMRobertaForSequenceClassification", HeadKind::sequence, "classifier.out_proj.weight"},
                          {"XLMRobertaForTokenClassification", HeadKind::token, "classifier.weight"},
                          {"XLMRobertaForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                          {"XLMRobertaForMultipleChoice", HeadKind::choice},
                          {"XLMRobertaModel", HeadKind::none}});
const Family kCamembert =
    named("camembert", {{"CamembertForMaskedLM", HeadKind::masked_lm, "lm_head.dense.weight"},
                        {"CamembertForSequenceClassification", HeadKind::sequence, "classifier.out_proj.weight"},
                        {"CamembertForTokenClassification", HeadKind::token, "classifier.weight"},
                        {"CamembertForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                        {"CamembertForMultipleChoice", HeadKind::choice},
                        {"CamembertModel", HeadKind::none}});

}  // namespace mh::detail
