// What tells one Transformer from another, as plain data: a family's config.json becomes one of these and it becomes a
// config.json again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/block_options.h"
#include "multihead/nn/input_embedding.h"
#include "multihead/nn/patch_embedding.h"

namespace mh {

// Ids; -1: there is none.
struct SpecialTokens {
  int32_t pad = -1, begin = -1, decoder_start = -1, separator = -1, mask = -1;
  std::vector<int32_t> ends{};  // any of these ends a text
};

// Which row of a sequence a head reads.
enum class HeadRows {
  all,
  first,
  mean,
  last_text,  // the last that is not padding's id
  last_end,   // the last that is an end's id; in a decoder behind an encoder that of the encoder's ids
  first_end,  // the first that is
  highest_id,
  pooled  // what the pooler makes of the first
};

enum class HeadKind {
  none,
  masked_lm,
  causal_lm,
  seq2seq_lm,
  sequence,  // one label, or several, for a text or a pair
  token,
  question,  // start and end of the answer
  choice,    // one number per text: the best of several
  image,
  contrastive  // text and image towers, compared
};
std::string_view name_of(HeadKind kind);  // "masked language model", …

// out(norm(activation(dense(rows)))), each but `out` where it is there.
struct HeadPlan {
  HeadKind kind = HeadKind::none;
  HeadRows rows = HeadRows::all;
  int64_t outputs = 0;  // labels, or the vocabulary
  bool dense = false;
  int64_t dense_width = 0;  // 0: that of what it reads
  bool dense_bias = true;
  Activation activation = Activation::none;
  std::optional<Norm::Options> norm{};
  bool out_bias = true;
  bool out_is_embedding = false;  // `out` is the embedding's matrix
  int64_t distilled = 0;          // 1: a second `out` reads the second row; the two are averaged (DeiT)
  float scale = 1;                // of the rows before `out`
  float dropout = 0;
};

// activation(dense(first row)): "pooler_output".
struct PoolerPlan {
  bool given = false;
  Activation activation = Activation::tanh;
  bool is_output = true;  // else only the head reads it
  int64_t width = 0;      // 0: the stack's
};

// What a text model without patches has: an encoder alone (BERT), a causal decoder alone (GPT), or both, in which case
// the decoder has cross-attention. With patches the encoder reads images, and a decoder reads text: with
// cross-attention (captions), or without (CLIP's towers). Embeddings belong to the first stack that reads text.
struct Architecture {
  std::string family{};       // model_type
  std::string model_class{};  // architectures[0] of the config; empty: none was named
  std::optional<InputEmbeddingOptions> embedding{};
  std::optional<InputEmbeddingOptions> decoder_embedding{};  // where the decoder's differs in more than its weights
  bool decoder_shares_tokens = true;                         // the decoder reads the encoder's table of tokens
  std::optional<PatchEmbeddingOptions> patches{};
  std::optional<StackOptions> encoder{}, decoder{};
  bool cross_attention = false;
  bool wraps_last = false;  // a decoder that reads its text itself begins with the text's last token (mBART)
  bool bridged = false;     // a matrix brings the encoder's rows to the decoder's width
  PoolerPlan pooler{};
  HeadPlan head{};
  int64_t projection_width = 0;               // contrastive: of both towers
  std::optional<Norm::Options> image_norm{};  // contrastive: of the image's class row
  SpecialTokens tokens{};
  std::vector<std::string> labels{};  // by number; empty: LABEL_0 …
  std::string problem_type{};         // as the config says, or empty
  std::string config{};               // the text of config.json as it was read, with every key
};

// Whether the decoder reads the text again, a token later, for a head that labels it, as BART's classifier does.
inline bool reads_text_twice(const Architecture& a) {
  return a.encoder && a.decoder && (a.head.kind == HeadKind::sequence || a.head.kind == HeadKind::question);
}

}  // namespace mh
