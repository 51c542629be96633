// GPT-2: pre-norm, learned positions, and matrices that lie (in, out), queries, keys and values side by side.
#include <cmath>

#include "multihead/models/families/decoder_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void gpt2_defaults(Architecture& a) {
  a.embedding = InputEmbeddingOptions{.vocabulary = 50257,
                                      .positions = InputEmbeddingOptions::Positions::learned,
                                      .max_positions = 1024,
                                      .dropout = 0.1F};
  a.decoder = StackOptions{.block = {.width = 768,
                                     .heads = 12,
                                     .middle = Middle::gelu_tanh,
                                     .dropout = 0.1F,
                                     .separate = true,
                                     .attention_dropout = 0.1F,
                                     .middle_dropout = 0},
                           .layers = 12,
                           .causal = true};
  a.tokens.begin = 50256;
  a.tokens.ends = {50256};
}

// Scores are divided by √width, by the layer's number, or by neither.
void settle_gpt2_scales(StackOptions& stack, bool by_width, bool by_layer) {
  const BlockOptions& b = stack.block;
  const float usual = by_width ? 1 / std::sqrt(static_cast<float>(b.width / b.heads)) : 1;
  if (!by_width) stack.block.scale = usual;
  for (int64_t n = 0; by_layer && n < stack.layers; ++n) {
    stack.blocks.push_back(b);
    stack.blocks.back().scale = usual / static_cast<float>(n + 1);
  }
}

void gpt2_keys(ConfigFields& fields, Architecture& a) {
  if (fields.is_reading()) gpt2_defaults(a);
  InputEmbeddingOptions& e = *a.embedding;
  BlockOptions& b = a.decoder->block;
  bool by_width = !b.scale, by_layer = !a.decoder->blocks.empty();
  fields.size("vocab_size", e.vocabulary);
  fields.size("n_positions", e.max_positions);
  fields.size("n_embd", b.width);
  fields.size("n_layer", a.decoder->layers);
  fields.size("n_head", b.heads);
  if (fields.is_reading()) b.feed_forward = 4 * b.width;
  fields.size("n_inner", b.feed_forward);
  fields.activation("activation_function", b.middle);
  fields.number("layer_norm_epsilon", b.normalisation.eps);
  fields.number("embd_pdrop", e.dropout);
  fields.number("resid_pdrop", b.dropout);
  fields.number("attn_pdrop", *b.attention_dropout);
  fields.flag("scale_attn_weights", by_width);
  fields.flag("scale_attn_by_inverse_layer_idx", by_layer);
  fields.require("add_cross_attention", false);
  tie_key(fields, a);
  if (!fields.is_reading()) return;
  e.width = b.width;
  settle_gpt2_scales(*a.decoder, by_width, by_layer);
}

void gpt2_head(Architecture& a) { decoder_head(a, false); }

std::vector<TensorName> gpt2_names(const Architecture& a) {
  const std::string layer = "h.{}.", ours = "decoder.layers.{}.";
  const TensorLayout turned{.transposed = true};
  std::vector<TensorName> out{{"wte", "embedding.tokens"},
                              {"wpe", "embedding.positions"},
                              {layer + "ln_1", ours + "norm1"},
                              {layer + "attn.c_proj", ours + "self_attn.out_proj", turned},
                              {layer + "ln_2", ours + "norm2"},
                              {layer + "mlp.c_fc", ours + "linear1", turned},
                              {layer + "mlp.c_proj", ours + "linear2", turned},
                              {"ln_f", "decoder.norm"}};
  int part = 0;
  for (const char* which : {"q", "k", "v"})
    out.push_back({layer + "attn.c_attn",
                   ours + "self_attn." + which + "_proj",
                   {.transposed = true, .part = part++, .parts = 3}});
  for (TensorName& each : decoder_head_names(a, "lm_head", "classifier")) out.push_back(std::move(each));
  return out;
}

}  // namespace

const Family kGpt2{.type = "gpt2",
                   .prefixes = {"transformer."},
                   .classes = {{"GPT2LMHeadModel", HeadKind::causal_lm, "lm_head.weight"},
                               {"GPT2ForSequenceClassification", HeadKind::sequence, "score.weight"},
                               {"GPT2ForTokenClassification", HeadKind::token, "classifier.weight"},
                               {"GPT2ForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                               {"GPT2Model", HeadKind::none}},
                   .keys = gpt2_keys,
                   .head = gpt2_head,
                   .names = gpt2_names,
                   .ignored = {"*.attn.bias", "*.attn.masked_bias"}};

}  // namespace mh::detail
