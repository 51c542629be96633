// MPNet: RoBERTa without token types, with a T5 table of distances that all layers read.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void mpnet_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  T5Buckets t5;
  if (fields.is_reading()) {
    a.embedding->vocabulary = 30527;
    a.embedding->types = 0;
    a.encoder->shared_positions = true;
  } else {
    t5 = std::get<T5Buckets>(a.encoder->block.positions);
  }
  bert_keys(fields, a);
  fields.size("relative_attention_num_buckets", t5.buckets);
  offset_positions(fields, a);
  a.encoder->block.positions = t5;
  if (fields.is_reading()) settle_bert(a);
}

std::vector<TensorName> mpnet_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names({.query = "attention.attn.q",
                                            .key = "attention.attn.k",
                                            .value = "attention.attn.v",
                                            .out = "attention.attn.o",
                                            .norm1 = "attention.LayerNorm"});
  append(out, {{"encoder.relative_attention_bias.weight", "encoder.relative_bias", {.exact = true}}});
  append(out, roberta_head_names(a));
  return out;
}

}  // namespace

const Family kMpnet{.type = "mpnet",
                    .prefixes = {"mpnet."},
                    .classes = {{"MPNetForMaskedLM", HeadKind::masked_lm, "lm_head.dense.weight"},
                                {"MPNetForSequenceClassification", HeadKind::sequence, "classifier.out_proj.weight"},
                                {"MPNetForTokenClassification", HeadKind::token, "classifier.weight"},
                                {"MPNetForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                                {"MPNetForMultipleChoice", HeadKind::choice},
                                {"MPNetModel", HeadKind::none}},
                    .keys = mpnet_keys,
                    .head = roberta_head,
                    .names = mpnet_names,
                    .ignored = {"*position_ids"}};

}  // namespace mh::detail
