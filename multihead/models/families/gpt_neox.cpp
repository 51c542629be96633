// GPT-NeoX and Pythia: attention and feed-forward beside each other, rotary positions on a part of each head.
#include "multihead/models/families/decoder_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void gpt_neox_defaults(Architecture& a) {
  a.embedding = InputEmbeddingOptions{.vocabulary = 50432, .max_positions = 2048};
  a.decoder = StackOptions{.block = {.width = 6144,
                                     .heads = 64,
                                     .feed_forward = 24576,
                                     .norm = NormPlace::parallel,
                                     .middle = Middle::gelu,
                                     .dropout = 0,
                                     .separate = true,
                                     .attention_dropout = 0,
                                     .middle_dropout = 0},
                           .layers = 44,
                           .causal = true};
  a.tokens = {.begin = 0, .ends = {2}};
  a.head.dropout = 0.1F;
}

void gpt_neox_keys(ConfigFields& fields, Architecture& a) {
  if (fields.is_reading()) gpt_neox_defaults(a);
  InputEmbeddingOptions& e = *a.embedding;
  BlockOptions& b = a.decoder->block;
  RotaryKeys rotary{.share = 0.25F};
  if (const auto* set = std::get_if<Rotary>(&b.positions))
    rotary = {set->base, static_cast<float>(set->width) / static_cast<float>(b.width / b.heads)};
  bool beside = b.norm == NormPlace::parallel, biased = !b.attention_biases;
  fields.size("vocab_size", e.vocabulary);
  fields.size("hidden_size", b.width);
  fields.size("num_hidden_layers", a.decoder->layers);
  fields.size("num_attention_heads", b.heads);
  fields.size("intermediate_size", b.feed_forward);
  fields.size("max_position_embeddings", e.max_positions);
  fields.activation("hidden_act", b.middle);
  fields.number("layer_norm_eps", b.normalisation.eps);
  fields.number("attention_dropout", *b.attention_dropout);
  fields.number("hidden_dropout", b.dropout);
  fields.number("classifier_dropout", a.head.dropout);
  fields.flag("use_parallel_residual", beside);
  fields.flag("attention_bias", biased);
  rotary_keys(fields, rotary, "rotary_emb_base", "rotary_pct");
  tie_key(fields, a);
  if (!fields.is_reading()) return;
  e.width = b.width;
  e.dropout = b.dropout;
  b.norm = beside ? NormPlace::parallel : NormPlace::before;
  const int64_t head_width = b.width / b.heads;
  const auto turned = static_cast<int64_t>(static_cast<float>(head_width) * rotary.share);
  if (turned < 2 || turned % 2 != 0 || turned > head_width)
    fields.refuse("rotary_pct", fmt::format("an even part of a head, which is {} wide", head_width));
  b.positions = Rotary{.base = rotary.base, .width = turned};
  if (!biased) b.attention_biases = AttentionBiases{false, false, false, false};
}

void gpt_neox_head(Architecture& a) { decoder_head(a, a.head.kind != HeadKind::sequence); }

std::vector<TensorName> gpt_neox_names(const Architecture& a) {
  const std::string layer = "layers.{}.", ours = "decoder.layers.{}.";
  std::vector<TensorName> out{{"embed_in", "embedding.tokens"},
                              {layer + "input_layernorm", ours + "norm1"},
                              {layer + "attention.dense", ours + "self_attn.out_proj"},
                              {layer + "post_attention_layernorm", ours + "norm2"},
                              {layer + "mlp.dense_h_to_4h", ours + "linear1"},
                              {layer + "mlp.dense_4h_to_h", ours + "linear2"},
                              {"final_layer_norm", "decoder.norm"}};
  int part = 0;
  for (const char* which : {"q", "k", "v"})
    out.push_back({layer + "attention.query_key_value",
                   ours + "self_attn." + which + "_proj",
                   {.part = part++, .parts = 3, .heads = a.decoder->block.heads}});
  for (TensorName& each : decoder_head_names(a, "embed_out", "classifier")) out.push_back(std::move(each));
  return out;
}

}  // namespace

const Family kGptNeox{.type = "gpt_neox",
                      .prefixes = {"gpt_neox."},
                      .classes = {{"GPTNeoXForCausalLM", HeadKind::causal_lm, "embed_out.weight"},
                                  {"GPTNeoXForSequenceClassification", HeadKind::sequence, "score.weight"},
                                  {"GPTNeoXForTokenClassification", HeadKind::token, "classifier.weight"},
                                  {"GPTNeoXForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                                  {"GPTNeoXModel", HeadKind::none}},
                      .keys = gpt_neox_keys,
                      .head = gpt_neox_head,
                      .names = gpt_neox_names,
                      .ignored = {"*.attention.bias", "*.attention.masked_bias", "*rotary_emb.inv_freq"}};

}  // namespace mh::detail
