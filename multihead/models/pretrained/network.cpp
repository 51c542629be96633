// Builds the modules of an Architecture and runs its stacks.
#include "multihead/models/pretrained/network.h"

#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/dropout.h"

namespace mh {

namespace {

void check_length(std::string_view call, const Sequences& at, const InputEmbedding& embedding) {
  const int64_t most = embedding.options().max_positions;
  check(most == 0 || at.longest <= most, "{}: a sequence of {} tokens; expected at most {}", call, at.longest, most);
}

Tensor tokens_of(const std::vector<int32_t>& ids) { return tensor<int32_t>(ids, {static_cast<int64_t>(ids.size())}); }

}  // namespace

Head::Head(const Params& at, const HeadPlan& plan, int64_t width, const Param* tokens) : plan_(plan) {
  int64_t in = width;
  if (plan.dense) {
    in = plan.dense_width > 0 ? plan.dense_width : width;
    dense_.emplace(at / "dense", width, in, plan.dense_bias);
  }
  if (plan.norm) norm_.emplace(at / "norm", in, *plan.norm);
  if (plan.out_is_embedding) {
    check(tokens != nullptr && tokens->value.size(0) == plan.outputs && tokens->value.size(1) == in,
          "head: it reads the embedding's matrix, which does not fit; expected ({}, {})", plan.outputs, in);
    const Param* bias = plan.out_bias ? &(at / "out").make("bias", {plan.outputs}, Init::zeros()) : nullptr;
    out_.emplace(*tokens, bias, Linear::Part{0, plan.outputs, 0});
  } else {
    out_.emplace(at / "out", in, plan.outputs, plan.out_bias);
  }
}

Tensor Head::operator()(const Tensor& rows, Pass& pass) const {
  Tensor x = plan_.dense ? rows : dropout(rows, pass.dropout(plan_.dropout));
  if (dense_) x = (*dense_)(cast(x, pass.compute()), {.activation = plan_.activation, .result = DType::f32});
  if (norm_) x = (*norm_)(x);
  if (plan_.dense && plan_.kind != HeadKind::masked_lm) x = dropout(x, pass.dropout(plan_.dropout));
  if (plan_.scale != 1) x = scale(x, plan_.scale);
  return (*out_)(cast(x, pass.compute()), {.result = DType::f32});
}

void Head::pack(DType compute) {
  if (dense_) dense_->pack(compute);
  out_->pack(compute);
}

Network::Network(const Architecture& of, ParamStore& store) : architecture(of) {
  const Architecture& a = architecture;
  const Params at(store);
  const bool text_encoder = a.encoder && !a.patches;
  if (a.embedding) embedding.emplace(at / "embedding", *a.embedding);
  if (a.decoder_embedding)
    decoder_embedding.emplace(at / "decoder_embedding", *a.decoder_embedding,
                              a.decoder_shares_tokens && embedding ? &embedding->tokens() : nullptr);
  if (a.patches) patches.emplace(at / "patches", *a.patches);
  if (a.encoder) encoder.emplace(at / "encoder", *a.encoder);
  if (a.decoder && a.cross_attention) decoder.emplace(at / "decoder", *a.decoder);
  if (a.decoder && !a.cross_attention) causal.emplace(at / "decoder", *a.decoder);
  check(encoder || causal || decoder, "network: {} has no stack; expected an encoder or a decoder", a.family);
  check(!text_encoder || embedding, "network: {} has no embedding; expected one for its encoder", a.family);

  const bool writes = a.decoder.has_value() && a.head.kind != HeadKind::contrastive;
  const int64_t width = writes ? a.decoder->block.width : a.encoder->block.width;
  if (a.cross_attention && a.encoder && a.bridged)
    bridge.emplace(at / "bridge", a.encoder->block.width, a.decoder->block.width);
  if (a.pooler.given) pooler.emplace(at / "pooler" / "dense", width, a.pooler.width > 0 ? a.pooler.width : width);
  if (a.head.kind == HeadKind::contrastive) {
    text_projection.emplace(at / "head" / "text", a.decoder->block.width, a.projection_width, false);
    image_projection.emplace(at / "head" / "image", width, a.projection_width, false);
    if (a.image_norm) image_norm.emplace(at / "head" / "image_norm", width, *a.image_norm);
    logit_scale = &(at / "head").make("logit_scale", {}, Init::zeros());
  } else if (a.head.kind != HeadKind::none) {
    const InputEmbedding* words = decoder_embedding ? &*decoder_embedding : embedding ? &*embedding : nullptr;
    const bool pooled = a.head.rows == HeadRows::pooled;
    head.emplace(at / "head", a.head, pooled && a.pooler.width > 0 ? a.pooler.width : width,
                 words != nullptr ? &words->tokens() : nullptr);
    if (a.head.distilled > 0) distilled.emplace(at / "head" / "distilled", a.head, width, nullptr);
  }
}

EncoderOutput Network::encode(const TokenBatch& tokens, const Tensor& types, Pass& pass, StackRecord* record) const {
  check(encoder && embedding, "encode: a {} model reads no text with an encoder", architecture.family);
  check_length("encode", tokens.at, *embedding);
  const Tensor x = (*embedding)(tokens.ids, tokens.at.positions, types, pass);
  return {(*encoder)(x, tokens.at, pass, {}, record), tokens.at};
}

EncoderOutput Network::encode_images(const Tensor& pixels, Pass& pass, StackRecord* record) const {
  check(encoder && patches, "encode: a {} model reads no images", architecture.family);
  const Tensor x = (*patches)(pixels, pass);
  const Sequences at = Sequences::uniform(pixels.size(0), architecture.patches->rows());
  return {(*encoder)(x, at, pass, {}, record), at};
}

EncoderOutput Network::bridged(const EncoderOutput& encoded, Pass& pass) const {
  return bridge ? EncoderOutput{(*bridge)(cast(encoded.rows, pass.compute())), encoded.at} : encoded;
}

Tensor Network::embed_for_decoder(const Tensor& ids, const Tensor& positions, Pass& pass) const {
  const std::optional<InputEmbedding>& reader = decoder_embedding ? decoder_embedding : embedding;
  check(reader.has_value(), "decode: a {} model reads no text with a decoder", architecture.family);
  return (*reader)(ids, positions, {}, pass);
}

Tensor Network::decode(const TokenBatch& tokens, const EncoderOutput& memory, Pass& pass, StackRecord* record) const {
  check_length("decode", tokens.at, decoder_embedding ? *decoder_embedding : *embedding);
  const Tensor x = embed_for_decoder(tokens.ids, tokens.at.positions, pass);
  if (causal) return (*causal)(x, tokens.at, pass, {}, record);
  return (*decoder)(x, tokens.at, memory, pass, record);
}

AttentionState Network::begin(const EncoderOutput& memory, int64_t room, Pass& pass) const {
  check(decoder.has_value(), "begin: a {} model has no decoder with cross-attention", architecture.family);
  AttentionState state({.sequences = memory.at.count(), .room = room, .dtype = pass.compute()});
  for (const DecoderLayer& layer : decoder->layers()) state.add_layer(layer.self_attn, layer.cross_attn, memory);
  return state;
}

AttentionState Network::begin(const TokenBatch& prompts, int64_t room, Pass& pass) const {
  check(causal.has_value(), "begin: a {} model has no decoder of its own", architecture.family);
  check_length("begin", prompts.at, decoder_embedding ? *decoder_embedding : *embedding);
  AttentionState state({.sequences = prompts.at.count(), .room = room, .dtype = pass.compute()});
  for (int64_t n = 0; n < causal->depth(); ++n) state.add_layer(causal->layer(n).self_attn);
  if (prompts.at.rows > 0)
    causal->begin(embed_for_decoder(prompts.ids, prompts.at.positions, pass), prompts.at, state, pass);
  return state;
}

Tensor Network::step(AttentionState& state, const std::vector<int32_t>& ids, Pass& pass) const {
  check(static_cast<int64_t>(ids.size()) == state.hypotheses(), "step: {} tokens for {} hypotheses", ids.size(),
        state.hypotheses());
  const Tensor positions = state.positions(), x = embed_for_decoder(tokens_of(ids), positions, pass);
  return causal ? causal->step(x, positions, state, pass) : decoder->step(x, positions, state, pass);
}

void Network::pack(DType compute) {
  const auto each = [&](auto&... parts) { ((parts ? parts->pack(compute) : void()), ...); };
  each(embedding, decoder_embedding, patches, encoder, causal, decoder, bridge, pooler, text_projection,
       image_projection, head, distilled);
}

}  // namespace mh
