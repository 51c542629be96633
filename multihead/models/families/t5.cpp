// T5, Flan-T5 and mT5: RMS norms, no biases, buckets of distances in place of positions, scores that are not scaled.
#include <cmath>

#include "multihead/models/families/decoder_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

constexpr std::pair<std::string_view, Middle> kT5Middles[] = {
    {"relu", Middle::relu}, {"gated-gelu", Middle::geglu_tanh}, {"gated-silu", Middle::swiglu},
    {"gelu", Middle::gelu}, {"gelu_new", Middle::gelu_tanh},    {"silu", Middle::silu}};

void t5_defaults(Architecture& a) {
  a.embedding = InputEmbeddingOptions{.vocabulary = 32128, .dropout = 0.1F};
  a.encoder = StackOptions{.block = {.width = 512,
                                     .heads = 8,
                                     .feed_forward = 2048,
                                     .middle = Middle::relu,
                                     .dropout = 0.1F,
                                     .bias = false,
                                     .normalisation = {.rms = true, .eps = 1e-6F},
                                     .positions = T5Buckets{},
                                     .key_width = 64,
                                     .separate = true,
                                     .scale = 1.0F},
                           .layers = 6,
                           .shared_positions = true};
  a.decoder = a.encoder;
  a.cross_attention = true;
  a.tokens = {.pad = 0, .decoder_start = 0, .ends = {1}};
}

void t5_middle_key(ConfigFields& fields, Middle& middle) {
  std::string word;
  for (const auto& [name, meaning] : kT5Middles)
    if (meaning == middle) word = name;
  fields.text("feed_forward_proj", word);
  for (const auto& [name, meaning] : kT5Middles) {
    if (word != name) continue;
    middle = meaning;
    return;
  }
  fields.refuse("feed_forward_proj", "relu, gelu, silu or gelu_new, gated-gelu or gated-silu");
}

// Whether rows are scaled before the output: by a key of its own, or where there is none by whether they are tied.
void t5_scale_key(ConfigFields& fields, Architecture& a, bool may_scale) {
  bool scaled = may_scale && (fields.is_reading() || a.head.scale != 1);
  if (fields.is_reading()) fields.flag("tie_word_embeddings", scaled);
  if (may_scale) fields.flag("scale_decoder_outputs", scaled);
  if (fields.is_reading())
    a.head.scale = scaled && may_scale ? 1 / std::sqrt(static_cast<float>(a.decoder->block.width)) : 1;
}

void t5_shared_keys(ConfigFields& fields, Architecture& a, bool may_scale) {
  if (fields.is_reading()) t5_defaults(a);
  StackOptions& encoder = *a.encoder;
  BlockOptions& b = encoder.block;
  auto& buckets = std::get<T5Buckets>(b.positions);
  fields.size("vocab_size", a.embedding->vocabulary);
  fields.size("d_model", b.width);
  fields.size("d_kv", b.key_width);
  fields.size("d_ff", b.feed_forward);
  fields.size("num_heads", b.heads);
  fields.size("num_layers", encoder.layers);
  fields.size("relative_attention_num_buckets", buckets.buckets);
  fields.size("relative_attention_max_distance", buckets.max_distance);
  fields.number("dropout_rate", b.dropout);
  fields.number("layer_norm_epsilon", b.normalisation.eps);
  t5_middle_key(fields, b.middle);
  int64_t decoder_layers = a.decoder && !fields.is_reading() ? a.decoder->layers : encoder.layers;
  fields.size("num_decoder_layers", decoder_layers);
  if (fields.is_reading()) {
    a.embedding->width = b.width;
    a.embedding->dropout = b.dropout;
    a.decoder = encoder;
    a.decoder->layers = decoder_layers;
    std::get<T5Buckets>(a.decoder->block.positions).bidirectional = false;
  }
  bool both = true;
  if (!fields.is_reading()) fields.flag("is_encoder_decoder", both);
  if (a.decoder) t5_scale_key(fields, a, may_scale);
}

void t5_keys(ConfigFields& fields, Architecture& a) { t5_shared_keys(fields, a, true); }
void mt5_keys(ConfigFields& fields, Architecture& a) { t5_shared_keys(fields, a, false); }

void t5_head(Architecture& a) {
  if (a.model_class.ends_with("EncoderModel")) {
    a.decoder.reset();
    a.cross_attention = false;
  }
  if (a.head.kind != HeadKind::seq2seq_lm) return;
  const float scale = a.head.scale;
  a.head = next_token_head(a, HeadKind::seq2seq_lm);
  a.head.scale = scale;
}

void add_t5_feed_forward(std::vector<TensorName>& rows, const std::string& file, const std::string& ours) {
  rows.push_back({file + "wi", ours + "linear1"});
  rows.push_back({file + "wi_0", ours + "gate"});
  rows.push_back({file + "wi_1", ours + "linear1"});
  rows.push_back({file + "wo", ours + "linear2"});
}

void add_t5_attention(std::vector<TensorName>& rows, const std::string& file, const std::string& ours) {
  for (const char* which : {"q", "k", "v"}) rows.push_back({file + which, ours + which + "_proj"});
  rows.push_back({file + "o", ours + "out_proj"});
}

void add_t5_stack(std::vector<TensorName>& rows, const std::string& stack, bool cross) {
  const std::string block = stack + ".block.{}.layer.", ours = stack + ".layers.{}.";
  const std::string last = cross ? "2." : "1.";
  add_t5_attention(rows, block + "0.SelfAttention.", ours + "self_attn.");
  rows.push_back({block + "0.layer_norm", ours + "norm1"});
  if (cross) {
    add_t5_attention(rows, block + "1.EncDecAttention.", ours + "multihead_attn.");
    rows.push_back({block + "1.layer_norm", ours + "norm2"});
  }
  add_t5_feed_forward(rows, block + last + "DenseReluDense.", ours);
  rows.push_back({block + last + "layer_norm", ours + (cross ? "norm3" : "norm2")});
  rows.push_back({stack + ".final_layer_norm", stack + ".norm"});
  rows.push_back({stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                  stack + ".relative_bias",
                  {.exact = true}});
}

// A feed-forward has one first matrix or two: of the two rows for linear1 only that of this model is written.
std::vector<TensorName> t5_names(const Architecture& a) {
  std::vector<TensorName> out{{"shared", "embedding.tokens"},
                              {"encoder.embed_tokens", "embedding.tokens"},
                              {"decoder.embed_tokens", "embedding.tokens"},
                              {"lm_head", "head.out"}};
  add_t5_stack(out, "encoder", false);
  add_t5_stack(out, "decoder", true);
  const bool gated = is_gated(a.encoder->block.middle);
  std::erase_if(out, [&](const TensorName& row) { return row.file.ends_with(gated ? ".wi" : ".wi_1"); });
  return out;
}

const std::vector<std::string_view> kT5Ignored{
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};

}  // namespace

const Family kT5{.type = "t5",
                 .classes = {{"T5ForConditionalGeneration", HeadKind::seq2seq_lm, "lm_head.weight"},
                             {"T5EncoderModel", HeadKind::none},
                             {"T5Model", HeadKind::none}},
                 .keys = t5_keys,
                 .head = t5_head,
                 .names = t5_names,
                 .ignored = kT5Ignored};

const Family kMt5{.type = "mt5",
                  .classes = {{"MT5ForConditionalGeneration", HeadKind::seq2seq_lm, "lm_head.weight"},
                              {"MT5EncoderModel", HeadKind::none},
                              {"MT5Model", HeadKind::none}},
                  .keys = mt5_keys,
                  .head = t5_head,
                  .names = t5_names,
                  .ignored = kT5Ignored};

}  // namespace mh::detail
