// BERT: post-norm, learned positions and token types; MiniLM, BGE, E5 and most cross-encoders are it too.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void plain_bert_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  bert_keys(fields, a);
  fields.count("type_vocab_size", a.embedding->types);
  fields.number("classifier_dropout", a.head.dropout);
  fields.require("position_embedding_type", {"absolute"});
  fields.require("is_decoder", false);
  if (fields.is_reading()) settle_bert(a);
}

void plain_bert_head(Architecture& a) {
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

std::vector<TensorName> plain_bert_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names();
  if (a.head.kind == HeadKind::masked_lm) {
    append(out, {{"cls.predictions.transform.dense", "head.dense"},
                 {"cls.predictions.transform.LayerNorm", "head.norm"},
                 {"cls.predictions.bias", "head.out.bias", {.exact = true}},
                 {"cls.predictions.decoder", "head.out"}});
  } else {
    append(out, {{a.head.kind == HeadKind::question ? "qa_outputs" : "classifier", "head.out"}});
  }
  return out;
}

}  // namespace

const Family kBert{.type = "bert",
                   .prefixes = {"bert."},
                   .classes = {{"BertForMaskedLM", HeadKind::masked_lm, "cls.predictions.transform.dense.weight"},
                               {"BertForSequenceClassification", HeadKind::sequence, "classifier.weight"},
                               {"BertForTokenClassification", HeadKind::token},
                               {"BertForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                               {"BertForMultipleChoice", HeadKind::choice},
                               {"BertForPreTraining", HeadKind::masked_lm},
                               {"BertModel", HeadKind::none}},
                   .keys = plain_bert_keys,
                   .head = plain_bert_head,
                   .names = plain_bert_names,
                   .ignored = {"*position_ids"}};

}  // namespace mh::detail
