// CLIP: an image tower and a causal text tower, whose rows are compared.
#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

StackOptions tower() {
  return {.block = {.width = 512,
                    .heads = 8,
                    .feed_forward = 2048,
                    .middle = Middle::quick_gelu,
                    .dropout = 0,
                    .separate = true,
                    .attention_dropout = 0.0F},
          .layers = 12};
}

void tower_keys(ConfigFields& fields, StackOptions& stack) {
  BlockOptions& b = stack.block;
  fields.size("hidden_size", b.width);
  fields.layers("num_hidden_layers", stack.layers);
  fields.size("num_attention_heads", b.heads);
  fields.size("intermediate_size", b.feed_forward);
  fields.activation("hidden_act", b.middle);
  fields.number("attention_dropout", *b.attention_dropout);
  fields.number("layer_norm_eps", b.normalisation.eps);
}

void text_keys(ConfigFields& fields, Architecture& a) {
  if (fields.is_reading()) {
    a.decoder = tower();
    a.decoder->causal = true;
    a.embedding = InputEmbeddingOptions{
        .vocabulary = 49408, .positions = InputEmbeddingOptions::Positions::learned, .max_positions = 77};
    a.tokens = {.pad = 1, .begin = 49406, .ends = {49407}};
  }
  tower_keys(fields, *a.decoder);
  fields.size("vocab_size", a.embedding->vocabulary);
  fields.size("max_position_embeddings", a.embedding->max_positions);
  fields.id("pad_token_id", a.tokens.pad);
  fields.id("bos_token_id", a.tokens.begin);
  fields.ids("eos_token_id", a.tokens.ends);
  a.embedding->width = a.decoder->block.width;
}

void image_keys(ConfigFields& fields, Architecture& a) {
  if (fields.is_reading()) {
    a.encoder = tower();
    a.encoder->last_norm = false;
    a.encoder->block.width = 768;
    a.encoder->block.heads = 12;
    a.encoder->block.feed_forward = 3072;
    a.patches = PatchEmbeddingOptions{.patch_height = 32, .bias = false};
  }
  PatchEmbeddingOptions& p = *a.patches;
  tower_keys(fields, *a.encoder);
  fields.size("image_size", p.height);
  fields.size("patch_size", p.patch_height);
  fields.size("num_channels", p.channels);
  p.width = p.height;
  p.patch_width = p.patch_height;
  p.output = a.encoder->block.width;
  p.norm = a.encoder->block.normalisation;
  a.image_norm = a.encoder->block.normalisation;
}

void clip_keys(ConfigFields& fields, Architecture& a) {
  if (fields.is_reading()) a.projection_width = 512;
  ConfigFields text = fields.inside("text_config"), image = fields.inside("vision_config");
  text_keys(text, a);
  image_keys(image, a);
  fields.size("projection_dim", a.projection_width);
}

// Configs that say end 2 were written before the true one was in them: the end has the highest id.
void clip_head(Architecture& a) {
  a.head.kind = HeadKind::contrastive;
  a.head.rows = a.tokens.ends == std::vector<int32_t>{2} ? HeadRows::highest_id : HeadRows::first_end;
}

std::vector<TensorName> tower_names(const std::string& file, const std::string& ours) {
  const std::string layer = file + ".encoder.layers.{}.", own = ours + ".layers.{}.";
  return {{layer + "layer_norm1", own + "norm1"},
          {layer + "layer_norm2", own + "norm2"},
          {layer + "mlp.fc1", own + "linear1"},
          {layer + "mlp.fc2", own + "linear2"},
          {layer + "self_attn.q_proj", own + "self_attn.q_proj"},
          {layer + "self_attn.k_proj", own + "self_attn.k_proj"},
          {layer + "self_attn.v_proj", own + "self_attn.v_proj"},
          {layer + "self_attn.out_proj", own + "self_attn.out_proj"}};
}

std::vector<TensorName> clip_names(const Architecture& a) {
  const PatchEmbeddingOptions& p = *a.patches;
  std::vector<TensorName> out{
      {"text_model.embeddings.token_embedding", "embedding.tokens"},
      {"text_model.embeddings.position_embedding", "embedding.positions"},
      {"text_model.final_layer_norm", "decoder.norm"},
      {"vision_model.embeddings.class_embedding", "patches.extra.0", {.shape = {p.output}, .exact = true}},
      {"vision_model.embeddings.patch_embedding.weight",
       "patches.patches.weight",
       {.shape = {p.output, p.channels, p.patch_height, p.patch_width}, .exact = true}},
      {"vision_model.embeddings.position_embedding.weight", "patches.positions", {.exact = true}},
      {"vision_model.pre_layrnorm", "patches.norm"},
      {"vision_model.post_layernorm", "head.image_norm"},
      {"text_projection", "head.text"},
      {"visual_projection", "head.image"},
      {"logit_scale", "head.logit_scale", {.exact = true}}};
  append(out, tower_names("text_model", "decoder"));
  append(out, tower_names("vision_model", "encoder"));
  return out;
}

}  // namespace

const Family kClip{.type = "clip",
                   .classes = {{"CLIPModel", HeadKind::contrastive, "logit_scale"}},
                   .keys = clip_keys,
                   .head = clip_head,
                   .names = clip_names,
                   .ignored = {"*position_ids"}};

}  // namespace mh::detail
