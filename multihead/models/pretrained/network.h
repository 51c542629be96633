// The modules that an Architecture asks for, filled from a store of parameters.
#pragma once

#include <memory>
#include <optional>

#include "multihead/models/pretrained/architecture.h"
#include "multihead/models/pretrained/token_batch.h"
#include "multihead/nn/stacks.h"

namespace mh {

// out(norm(activation(dense(x)))); parameters dense.…, norm.…, out.….
class Head {
 public:
  // `tokens`: the embedding's matrix, where it is the head's too.
  Head(const Params& at, const HeadPlan& plan, int64_t width, const Param* tokens);
  // (rows, outputs) f32.
  Tensor operator()(const Tensor& rows, Pass& pass) const;
  void pack(DType compute);
  const Linear& out() const { return *out_; }

 private:
  HeadPlan plan_;
  std::optional<Linear> dense_;
  std::optional<Norm> norm_;
  std::optional<Linear> out_;
  const Param* bias_ = nullptr;
};

// Which parameters: embedding.…, decoder_embedding.…, patches.…, encoder.…, decoder.…, bridge.…, pooler.dense.…,
// head.…, head.distilled.….
struct Network {
  // Throws: invalid_argument where sizes do not fit, or the store's file lacks a parameter.
  Network(const Architecture& architecture, ParamStore& store);
  Network(Network&&) = default;

  // Rows of the last layer. `types` i32 (rows) or empty.
  EncoderOutput encode(const TokenBatch& tokens, const Tensor& types, Pass& pass, StackRecord* record = nullptr) const;
  EncoderOutput encode_images(const Tensor& pixels, Pass& pass, StackRecord* record = nullptr) const;
  // What the decoder's cross-attention reads: the encoder's rows, brought to the decoder's width where they differ.
  EncoderOutput bridged(const EncoderOutput& encoded, Pass& pass) const;
  // Rows of a decoder with cross-attention over `memory`, which is not read by one without.
  Tensor decode(const TokenBatch& tokens, const EncoderOutput& memory, Pass& pass, StackRecord* record = nullptr) const;
  // The rows of tokens that follow what `state` holds, one per hypothesis, and its first rows: for generating.
  AttentionState begin(const EncoderOutput& memory, int64_t room, Pass& pass) const;  // with cross-attention
  AttentionState begin(const TokenBatch& prompts, int64_t room, Pass& pass) const;    // a decoder alone
  Tensor step(AttentionState& state, const std::vector<int32_t>& ids, Pass& pass) const;

  // Lays every matrix out for inference in `compute`. To be called again after weights change.
  void pack(DType compute);

  Architecture architecture;
  std::optional<InputEmbedding> embedding, decoder_embedding;
  std::optional<PatchEmbedding> patches;
  std::optional<Encoder> encoder;  // with patches: of images
  std::optional<Encoder> causal;   // a decoder without cross-attention …
  std::optional<Decoder> decoder;  // … or with it
  std::optional<Linear> bridge, pooler, text_projection, image_projection;
  std::optional<Head> head, distilled;
  std::optional<Norm> image_norm;  // of CLIP's class row
  const Param* logit_scale = nullptr;

 private:
  Tensor embed_for_decoder(const Tensor& ids, const Tensor& positions, Pass& pass) const;
};

}  // namespace mh
