// ViT and DeiT: patches of an image through a pre-norm encoder.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

// Of an image or a patch: one number where it is square, else [height, width].
void sides(ConfigFields& fields, std::string_view key, int64_t& height, int64_t& width) {
  if (fields.is_reading() ? fields.is_list(key) : height != width) {
    std::vector<int64_t> both{height, width};
    fields.numbers(key, both);
    if (both.size() != 2 || both[0] < 1 || both[1] < 1) fields.refuse(key, "a size, or [height, width]");
    height = both[0];
    width = both[1];
  } else {
    fields.size(key, height);
    width = height;
  }
}

void vision_keys(ConfigFields& fields, Architecture& a, int64_t extra) {
  if (fields.is_reading()) {
    a.patches = PatchEmbeddingOptions{.extra = extra};
    a.encoder = StackOptions{.block = {.width = 768,
                                       .heads = 12,
                                       .feed_forward = 3072,
                                       .middle = Middle::gelu,
                                       .dropout = 0,
                                       .normalisation = {.eps = 1e-12F},
                                       .separate = true,
                                       .attention_biases = AttentionBiases{},
                                       .attention_dropout = 0.0F,
                                       .middle_dropout = 0.0F},
                             .layers = 12};
  }
  PatchEmbeddingOptions& p = *a.patches;
  BlockOptions& b = a.encoder->block;
  fields.size("hidden_size", b.width);
  fields.layers("num_hidden_layers", a.encoder->layers);
  fields.size("num_attention_heads", b.heads);
  fields.size("intermediate_size", b.feed_forward);
  fields.activation("hidden_act", b.middle);
  fields.number("hidden_dropout_prob", b.dropout);
  fields.number("attention_probs_dropout_prob", *b.attention_dropout);
  fields.number("layer_norm_eps", b.normalisation.eps);
  sides(fields, "image_size", p.height, p.width);
  sides(fields, "patch_size", p.patch_height, p.patch_width);
  fields.size("num_channels", p.channels);
  bool biased = b.attention_biases->query;
  fields.flag("qkv_bias", biased);
  a.pooler.width = a.pooler.width > 0 ? a.pooler.width : b.width;
  fields.size("pooler_output_size", a.pooler.width);
  fields.activation("pooler_act", a.pooler.activation);
  b.attention_biases = AttentionBiases{biased, biased, biased, true};
  p.output = b.width;
  p.dropout = b.dropout;
}

void vit_keys(ConfigFields& fields, Architecture& a) { vision_keys(fields, a, 1); }
void deit_keys(ConfigFields& fields, Architecture& a) { vision_keys(fields, a, 2); }

void vit_head(Architecture& a) {
  const bool distilled = a.model_class == "DeiTForImageClassificationWithTeacher";
  a.pooler.given = a.head.kind == HeadKind::none;
  if (a.head.kind == HeadKind::none) return;
  a.head = labels_head(a, HeadRows::first);
  a.head.distilled = distilled ? 1 : 0;
}

std::vector<TensorName> vit_names(const Architecture& a) {
  std::vector<TensorName> out = bert_names({.query = "attention.attention.query",
                                            .key = "attention.attention.key",
                                            .value = "attention.attention.value",
                                            .norm1 = "layernorm_before",
                                            .norm2 = "layernorm_after"});
  const PatchEmbeddingOptions& p = *a.patches;
  const TensorLayout row{.shape = {1, 1, p.output}, .exact = true};
  append(out,
         {{"embeddings.patch_embeddings.projection.weight",
           "patches.patches.weight",
           {.shape = {p.output, p.channels, p.patch_height, p.patch_width}, .exact = true}},
          {"embeddings.patch_embeddings.projection.bias", "patches.patches.bias", {.exact = true}},
          {"embeddings.cls_token", "patches.extra.0", row},
          {"embeddings.distillation_token", "patches.extra.1", row},
          {"embeddings.position_embeddings", "patches.positions", {.shape = {1, p.rows(), p.output}, .exact = true}},
          {"layernorm", "encoder.norm"}});
  if (a.head.distilled > 0) {
    append(out, {{"cls_classifier", "head.out"}, {"distillation_classifier", "head.distilled.out"}});
  } else {
    append(out, {{"classifier", "head.out"}});
  }
  return out;
}

}  // namespace

const Family kVit{
    .type = "vit",
    .prefixes = {"vit."},
    .classes = {{"ViTForImageClassification", HeadKind::image, "classifier.weight"}, {"ViTModel", HeadKind::none}},
    .keys = vit_keys,
    .head = vit_head,
    .names = vit_names,
    .ignored = {"embeddings.mask_token"}};
const Family kDeit{.type = "deit",
                   .prefixes = {"deit."},
                   .classes = {{"DeiTForImageClassification", HeadKind::image, "classifier.weight"},
                               {"DeiTForImageClassificationWithTeacher", HeadKind::image, "cls_classifier.weight"},
                               {"DeiTModel", HeadKind::none}},
                   .keys = deit_keys,
                   .head = vit_head,
                   .names = vit_names,
                   .ignored = {"embeddings.mask_token"}};

}  // namespace mh::detail
