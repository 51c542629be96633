// DeBERTa v2 and v3: BERT whose scores read distances beside contents.
#include <algorithm>
#include <cmath>

#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

// "p2c|c2p" or a list of the two.
void attention_types(ConfigFields& fields, Disentangled& d) {
  std::vector<std::string> types;
  if (!fields.is_reading()) {
    if (d.position_to_content) types.emplace_back("p2c");
    if (d.content_to_position) types.emplace_back("c2p");
    return fields.texts("pos_att_type", types);
  }
  d.content_to_position = d.position_to_content = false;
  if (!fields.has("pos_att_type")) return;
  if (fields.is_text("pos_att_type")) {
    std::string joined;
    fields.text("pos_att_type", joined);
    for (size_t at = 0; at <= joined.size();) {
      const size_t end = std::min(joined.find('|', at), joined.size());
      types.push_back(joined.substr(at, end - at));
      at = end + 1;
    }
  } else {
    fields.texts("pos_att_type", types);
  }
  for (const std::string& type : types) {
    if (type != "p2c" && type != "c2p") fields.refuse("pos_att_type", "\"p2c\", \"c2p\" or both");
    (type == "p2c" ? d.position_to_content : d.content_to_position) = true;
  }
}

// -1 for "none".
void bucket_key(ConfigFields& fields, std::string_view key, int64_t& place) {
  int64_t number = place > 0 ? place : -1;
  fields.any_number(key, number);
  place = std::max<int64_t>(number, 0);
}

void distance_keys(ConfigFields& fields, Architecture& a) {
  BlockOptions& b = a.encoder->block;
  Disentangled d{.buckets = 0, .max_distance = 0, .shared_projections = false};
  bool relative = false;
  std::string norm = a.encoder->normed_relative ? "layer_norm" : "none";
  if (const auto* has = std::get_if<Disentangled>(&b.positions)) {
    d = *has;
    relative = true;
  }
  fields.flag("relative_attention", relative);
  bucket_key(fields, "position_buckets", d.buckets);
  bucket_key(fields, "max_relative_positions", d.max_distance);
  fields.flag("share_att_key", d.shared_projections);
  fields.text("norm_rel_ebd", norm);
  attention_types(fields, d);
  if (!fields.is_reading() || !relative) return;
  if (norm != "none" && norm != "layer_norm") fields.refuse("norm_rel_ebd", "\"none\" or \"layer_norm\"");
  if (d.max_distance < 1) d.max_distance = a.embedding->max_positions;
  a.encoder->normed_relative = norm == "layer_norm";
  const int parts = 1 + (d.content_to_position ? 1 : 0) + (d.position_to_content ? 1 : 0);
  const int64_t width = b.width / std::max<int64_t>(b.heads, 1);
  b.scale = 1 / std::sqrt(static_cast<float>(width * parts));
  b.positions = d;
}

void deberta_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  InputEmbeddingOptions& e = *a.embedding;
  if (fields.is_reading()) {
    e.vocabulary = 128100;
    e.types = 0;
    a.encoder->layers = 24;
    BlockOptions& b = a.encoder->block;
    b.width = 1536;
    b.heads = 24;
    b.feed_forward = 6144;
    b.normalisation.eps = 1e-7F;
    a.pooler = {.activation = Activation::gelu, .is_output = false};
  }
  bert_keys(fields, a);
  fields.count("type_vocab_size", e.types);
  bool biased = e.positions == InputEmbeddingOptions::Positions::learned;
  fields.flag("position_biased_input", biased);
  if (!biased) e.positions = InputEmbeddingOptions::Positions::none;
  distance_keys(fields, a);
  fields.activation("pooler_hidden_act", a.pooler.activation);
  fields.number("cls_dropout", a.head.dropout);
  if (!fields.is_reading()) return;
  int64_t convolution = 0, narrow = a.encoder->block.width, pooler = a.encoder->block.width;
  fields.count("conv_kernel_size", convolution);
  fields.size("embedding_size", narrow);
  fields.size("pooler_hidden_size", pooler);
  if (convolution != 0) fields.refuse("conv_kernel_size", "0, or none: the layer of xlarge is not supported");
  if (narrow != a.encoder->block.width) fields.refuse("embedding_size", "the hidden_size");
  if (pooler != a.encoder->block.width) fields.refuse("pooler_hidden_size", "the hidden_size");
  settle_bert(a);
}

void deberta_head(Architecture& a) {
  switch (a.head.kind) {
    case HeadKind::sequence:
    case HeadKind::choice: a.head = labels_head(a, HeadRows::pooled); break;
    case HeadKind::token:
    case HeadKind::question: a.head = labels_head(a, HeadRows::all); break;
    case HeadKind::masked_lm: a.head = masked_head(a, activation_of(a.encoder->block.middle)); break;
    default: break;
  }
  a.pooler.given = a.head.rows == HeadRows::pooled;
}

std::vector<TensorName> deberta_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names(
      {.query = "attention.self.query_proj", .key = "attention.self.key_proj", .value = "attention.self.value_proj"});
  out.back().top = true;
  append(out, {{"encoder.layer.{}.attention.self.pos_key_proj", "encoder.layers.{}.self_attn.pos_key_proj"},
               {"encoder.layer.{}.attention.self.pos_query_proj", "encoder.layers.{}.self_attn.pos_query_proj"},
               {"encoder.rel_embeddings.weight", "encoder.relative", {.exact = true}},
               {"encoder.LayerNorm", "encoder.relative_norm"}});
  if (a.head.kind == HeadKind::masked_lm) {
    append(out, {{"cls.predictions.transform.dense", "head.dense"},
                 {"cls.predictions.transform.LayerNorm", "head.norm"},
                 {"cls.predictions.bias", "head.out.bias", {.exact = true}},
                 {"cls.predictions.decoder", "head.out"},
                 {"lm_predictions.lm_head.dense", "head.dense"},
                 {"lm_predictions.lm_head.LayerNorm", "head.norm"},
                 {"lm_predictions.lm_head.bias", "head.out.bias", {.exact = true}}});
  } else {
    append(out, {{a.head.kind == HeadKind::question ? "qa_outputs" : "classifier", "head.out"}});
  }
  return out;
}

}  // namespace

const Family kDeberta{.type = "deberta-v2",
                      .prefixes = {"deberta."},
                      .classes = {{"DebertaV2ForMaskedLM", HeadKind::masked_lm, "cls.predictions.bias"},
                                  {"DebertaV2ForSequenceClassification", HeadKind::sequence, "pooler.dense.weight"},
                                  {"DebertaV2ForTokenClassification", HeadKind::token, "classifier.weight"},
                                  {"DebertaV2ForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                                  {"DebertaV2ForMultipleChoice", HeadKind::choice},
                                  {"DebertaV2Model", HeadKind::none}},
                      .keys = deberta_keys,
                      .head = deberta_head,
                      .names = deberta_names,
                      .ignored = {"*position_ids", "mask_predictions.dense.weight", "mask_predictions.dense.bias",
                                  "mask_predictions.LayerNorm.weight", "mask_predictions.LayerNorm.bias",
                                  "mask_predictions.classifier.weight", "mask_predictions.classifier.bias"}};

}  // namespace mh::detail
