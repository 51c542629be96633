// ModernBERT: pre-norm without biases, rotary positions, a gated feed-forward, and windows in most layers.
#include <algorithm>
#include <cmath>

#include "multihead/models/families/bert_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";

struct Rotations {
  float full = 160000, sliding = 10000;
};

void rotation_keys(ConfigFields& fields, Rotations& rotations) {
  fields.number("global_rope_theta", rotations.full);
  fields.number("local_rope_theta", rotations.sliding);
  ConfigFields all = fields.inside("rope_parameters");
  for (const auto& [name, theta] : {std::pair{kFull, &rotations.full}, std::pair{kSliding, &rotations.sliding}}) {
    ConfigFields one = all.inside(name);
    one.number("rope_theta", *theta);
    std::string type = "default";
    if (one.is_reading()) {
      one.require("rope_type", {"default"});
    } else {
      one.text("rope_type", type);
    }
  }
}

// Which layers see everything.
std::vector<std::string> layer_types(ConfigFields& fields, const StackOptions& stack) {
  std::vector<std::string> types;
  if (!fields.is_reading()) {
    for (int64_t n = 0; n < stack.layers; ++n) types.emplace_back(stack.block_of(n).window < 0 ? kFull : kSliding);
    fields.texts("layer_types", types);
    return types;
  }
  int64_t every = 3;
  fields.size("global_attn_every_n_layers", every);
  for (int64_t n = 0; n < stack.layers; ++n) types.emplace_back(n % every == 0 ? kFull : kSliding);
  fields.texts("layer_types", types);
  const auto known = [](const std::string& type) { return type == kFull || type == kSliding; };
  if (static_cast<int64_t>(types.size()) != stack.layers || !std::all_of(types.begin(), types.end(), known))
    fields.refuse("layer_types", fmt::format("{} texts, \"{}\" or \"{}\"", stack.layers, kFull, kSliding));
  return types;
}

void modernbert_keys(ConfigFields& fields, Architecture& a) {
  begin_bert(fields, a);
  InputEmbeddingOptions& e = *a.embedding;
  StackOptions& stack = *a.encoder;
  BlockOptions& b = stack.block;
  Rotations rotations;
  int64_t window = 128;
  HeadPlan& h = a.head;
  if (fields.is_reading()) {
    e.vocabulary = 50368;
    e.types = 0;
    e.positions = InputEmbeddingOptions::Positions::none;
    e.max_positions = 8192;
    e.dropout = 0;
    b.feed_forward = 1152;
    b.norm = NormPlace::before;
    b.middle = Middle::geglu;
    b.dropout = 0;
    b.attention_dropout = 0;
    b.bias = false;
    b.normalisation = {.eps = 1e-5F, .bias = false};
    stack.layers = 22;
    stack.last_norm = true;
    a.tokens.pad = 50283;
    h = {.rows = HeadRows::first, .dense_bias = false, .activation = Activation::gelu};
  } else {
    for (int64_t n = 0; n < stack.layers; ++n) {
      const BlockOptions& block = stack.block_of(n);
      (block.window < 0 ? rotations.full : rotations.sliding) = std::get<Rotary>(block.positions).base;
      if (block.window >= 0) window = 2 * block.window;
    }
  }
  Middle plain = b.middle == Middle::geglu_tanh ? Middle::gelu_tanh
                 : b.middle == Middle::swiglu   ? Middle::silu
                                                : Middle::gelu;
  std::string pooling = h.rows == HeadRows::mean ? "mean" : "cls";
  fields.size("vocab_size", e.vocabulary);
  fields.size("hidden_size", b.width);
  fields.layers("num_hidden_layers", stack.layers);
  fields.size("num_attention_heads", b.heads);
  fields.size("intermediate_size", b.feed_forward);
  fields.size("max_position_embeddings", e.max_positions);
  fields.activation("hidden_activation", plain);
  fields.number("norm_eps", b.normalisation.eps);
  fields.number("embedding_dropout", e.dropout);
  fields.number("attention_dropout", *b.attention_dropout);
  fields.number("mlp_dropout", *b.middle_dropout);
  fields.size("local_attention", window);
  fields.text("classifier_pooling", pooling);
  fields.flag("classifier_bias", h.dense_bias);
  fields.activation("classifier_activation", h.activation);
  fields.number("classifier_dropout", h.dropout);
  for (const std::string_view bias : {"norm_bias", "attention_bias", "mlp_bias"}) fields.require(bias, false);
  rotation_keys(fields, rotations);
  const std::vector<std::string> types = layer_types(fields, stack);
  if (!fields.is_reading()) return;

  if (plain != Middle::gelu && plain != Middle::gelu_tanh && plain != Middle::silu)
    fields.refuse("hidden_activation", "a gelu or silu");
  b.middle = plain == Middle::gelu ? Middle::geglu : plain == Middle::silu ? Middle::swiglu : Middle::geglu_tanh;
  h.rows = pooling == "mean" ? HeadRows::mean : HeadRows::first;
  e.width = e.output = b.width;
  e.norm = b.normalisation;
  for (size_t n = 0; n < types.size(); ++n) {
    BlockOptions& block = stack.blocks.emplace_back(b);
    block.first_norm = n > 0;
    block.window = types[n] == kFull ? -1 : window / 2;
    block.positions = Rotary{.base = types[n] == kFull ? rotations.full : rotations.sliding};
  }
  b.positions = stack.blocks.front().positions;
}

// Every head is dense, activation and norm before what it gives.
void modernbert_head(Architecture& a) {
  if (a.head.kind == HeadKind::none) return;
  HeadPlan plan = a.head.kind == HeadKind::masked_lm ? masked_head(a, a.head.activation)
                                                     : dense_head(a, a.head.rows, a.head.activation);
  if (a.head.kind != HeadKind::sequence) plan.rows = HeadRows::all;
  plan.dense_bias = a.head.dense_bias;
  plan.norm = a.encoder->block.normalisation;
  a.head = plan;
}

std::vector<TensorName> modernbert_names(const Architecture& a) {
  const std::string layer = "layers.{}.", ours = "encoder.layers.{}.";
  const auto part = [](int n, int of) { return TensorLayout{.part = n, .parts = of}; };
  return {{"embeddings.tok_embeddings", "embedding.tokens"},
          {"embeddings.norm", "embedding.norm"},
          {layer + "attn_norm", ours + "norm1"},
          {layer + "attn.Wqkv", ours + "self_attn.q_proj", part(0, 3)},
          {layer + "attn.Wqkv", ours + "self_attn.k_proj", part(1, 3)},
          {layer + "attn.Wqkv", ours + "self_attn.v_proj", part(2, 3)},
          {layer + "attn.Wo", ours + "self_attn.out_proj"},
          {layer + "mlp_norm", ours + "norm2"},
          {layer + "mlp.Wi", ours + "gate", part(0, 2)},
          {layer + "mlp.Wi", ours + "linear1", part(1, 2)},
          {layer + "mlp.Wo", ours + "linear2"},
          {"final_norm", "encoder.norm"},
          {"head.dense", "head.dense"},
          {"head.norm", "head.norm"},
          {a.head.kind == HeadKind::masked_lm ? "decoder" : "classifier", "head.out"}};
}

}  // namespace

const Family kModernbert{.type = "modernbert",
                         .prefixes = {"model."},
                         .classes = {{"ModernBertForMaskedLM", HeadKind::masked_lm, "decoder.bias"},
                                     {"ModernBertForSequenceClassification", HeadKind::sequence, "classifier.weight"},
                                     {"ModernBertForTokenClassification", HeadKind::token},
                                     {"ModernBertForQuestionAnswering", HeadKind::question},
                                     {"ModernBertModel", HeadKind::none}},
                         .keys = modernbert_keys,
                         .head = modernbert_head,
                         .names = modernbert_names,
                         .ignored = {"*rotary_emb.inv_freq"}};

}  // namespace mh::detail
