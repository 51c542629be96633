// Llama (SmolLM, TinyLlama), Qwen2 and Qwen3: RMS norms, rotary positions, shared key heads, a gated feed-forward.
#include "multihead/models/families/decoder_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

enum class LlamaKind { llama, qwen2, qwen3 };

void llama_defaults(Architecture& a, LlamaKind kind) {
  a.embedding = InputEmbeddingOptions{.vocabulary = kind == LlamaKind::llama ? 32000 : 151936,
                                      .max_positions = kind == LlamaKind::llama ? 2048 : 32768};
  a.decoder = StackOptions{.block = {.width = 4096,
                                     .heads = 32,
                                     .feed_forward = kind == LlamaKind::llama ? 11008 : 22016,
                                     .middle = Middle::swiglu,
                                     .bias = false,
                                     .normalisation = {.rms = true, .eps = 1e-6F},
                                     .separate = true,
                                     .attention_dropout = 0,
                                     .middle_dropout = 0},
                           .layers = 32,
                           .causal = true};
  if (kind == LlamaKind::llama) a.tokens = {.begin = 1, .ends = {2}};
}

// Sizes, where a missing one follows from the others.
void llama_size_keys(ConfigFields& fields, Architecture& a, LlamaKind kind) {
  BlockOptions& b = a.decoder->block;
  fields.size("vocab_size", a.embedding->vocabulary);
  fields.size("hidden_size", b.width);
  fields.size("intermediate_size", b.feed_forward);
  fields.size("num_hidden_layers", a.decoder->layers);
  fields.size("num_attention_heads", b.heads);
  fields.size("max_position_embeddings", a.embedding->max_positions);
  if (fields.is_reading()) {
    b.key_heads = kind == LlamaKind::llama ? b.heads : 32;
    if (!fields.has("num_key_value_heads") && b.key_heads > b.heads) b.key_heads = b.heads;
    b.key_width = kind == LlamaKind::qwen3 ? 128 : b.width / b.heads;
  }
  fields.size("num_key_value_heads", b.key_heads);
  fields.size("head_dim", b.key_width);
}

void llama_shared_keys(ConfigFields& fields, Architecture& a, LlamaKind kind) {
  if (fields.is_reading()) llama_defaults(a, kind);
  BlockOptions& b = a.decoder->block;
  Middle plain = plain_middle(b.middle);
  RotaryKeys rotary;
  if (const auto* set = std::get_if<Rotary>(&b.positions)) rotary.base = set->base;
  bool biased = b.attention_biases.value_or(AttentionBiases{false, false, false, false}).out;
  llama_size_keys(fields, a, kind);
  fields.activation("hidden_act", plain);
  fields.number("rms_norm_eps", b.normalisation.eps);
  fields.number("attention_dropout", *b.attention_dropout);
  rotary_keys(fields, rotary, "rope_theta", "");
  if (kind != LlamaKind::qwen2) fields.flag("attention_bias", biased);
  if (kind == LlamaKind::llama) fields.flag("mlp_bias", b.bias);
  if (kind != LlamaKind::llama) fields.require("use_sliding_window", false);
  tie_key(fields, a);
  if (!fields.is_reading()) return;
  a.embedding->width = b.width;
  b.middle = gated_middle(fields, "hidden_act", plain);
  b.positions = Rotary{.base = rotary.base};
  const bool inner = biased || kind == LlamaKind::qwen2;
  b.attention_biases = AttentionBiases{inner, inner, inner, biased};
  if (kind == LlamaKind::qwen3) b.head_norm = b.normalisation;
}

void llama_keys(ConfigFields& fields, Architecture& a) { llama_shared_keys(fields, a, LlamaKind::llama); }
void qwen2_keys(ConfigFields& fields, Architecture& a) { llama_shared_keys(fields, a, LlamaKind::qwen2); }
void qwen3_keys(ConfigFields& fields, Architecture& a) { llama_shared_keys(fields, a, LlamaKind::qwen3); }

void llama_head(Architecture& a) { decoder_head(a, a.head.kind != HeadKind::sequence); }

std::vector<TensorName> llama_names(const Architecture& a) {
  const std::string layer = "layers.{}.", ours = "decoder.layers.{}.";
  std::vector<TensorName> out{{"embed_tokens", "embedding.tokens"},
                              {layer + "input_layernorm", ours + "norm1"},
                              {layer + "self_attn.q_norm", ours + "self_attn.q_norm"},
                              {layer + "self_attn.k_norm", ours + "self_attn.k_norm"},
                              {layer + "self_attn.q_proj", ours + "self_attn.q_proj"},
                              {layer + "self_attn.k_proj", ours + "self_attn.k_proj"},
                              {layer + "self_attn.v_proj", ours + "self_attn.v_proj"},
                              {layer + "self_attn.o_proj", ours + "self_attn.out_proj"},
                              {layer + "post_attention_layernorm", ours + "norm2"},
                              {layer + "mlp.gate_proj", ours + "gate"},
                              {layer + "mlp.up_proj", ours + "linear1"},
                              {layer + "mlp.down_proj", ours + "linear2"},
                              {"norm", "decoder.norm"}};
  for (TensorName& each : decoder_head_names(a, "lm_head", "score")) out.push_back(std::move(each));
  return out;
}

}  // namespace

const Family kLlama{.type = "llama",
                    .prefixes = {"model.", "transformer."},
                    .classes = {{"LlamaForCausalLM", HeadKind::causal_lm, "lm_head.weight"},
                                {"LlamaForSequenceClassification", HeadKind::sequence, "score.weight"},
                                {"LlamaForTokenClassification", HeadKind::token},
                                {"LlamaForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                                {"LlamaModel", HeadKind::none}},
                    .keys = llama_keys,
                    .head = llama_head,
                    .names = llama_names,
                    .ignored = {"*rotary_emb.inv_freq"}};

const Family kQwen2{.type = "qwen2",
                    .prefixes = {"model.", "transformer."},
                    .classes = {{"Qwen2ForCausalLM", HeadKind::causal_lm, "lm_head.weight"},
                                {"Qwen2ForSequenceClassification", HeadKind::sequence, "score.weight"},
                                {"Qwen2ForTokenClassification", HeadKind::token},
                                {"Qwen2ForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                                {"Qwen2Model", HeadKind::none}},
                    .keys = qwen2_keys,
                    .head = llama_head,
                    .names = llama_names,
                    .ignored = {"*rotary_emb.inv_freq"}};

const Family kQwen3{.type = "qwen3",
                    .prefixes = {"model.", "transformer."},
                    .classes = {{"Qwen3ForCausalLM", HeadKind::causal_lm, "lm_head.weight"},
                                {"Qwen3ForSequenceClassification", HeadKind::sequence, "score.weight"},
                                {"Qwen3ForTokenClassification", HeadKind::token},
                                {"Qwen3ForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                                {"Qwen3Model", HeadKind::none}},
                    .keys = qwen3_keys,
                    .head = llama_head,
                    .names = llama_names,
                    .ignored = {"*rotary_emb.inv_freq"}};

}  // namespace mh::detail
