// Our encoder-decoder Transformer as a model of Hugging Face's: the same function, in a folder that transformers loads.
#pragma once

#include <optional>
#include <string>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/models/transformer.h"

namespace mh {

struct ToHuggingFaceOptions {
  DType stored = DType::f32;  // of the matrices: or bf16 or f16; vectors stay f32
};

// With norms before it becomes a PegasusForConditionalGeneration, with norms after a MarianMTModel: embeddings scaled
// by √C, one table of tokens, no bias of the output. Their sinusoids are all sines, then all cosines, where ours
// alternate, so the residual stream is permuted, even elements before odd ones, in everything that writes or reads it.
// Our stacks with norms after end with one more norm, which theirs do not have: each gets one more layer, whose
// sublayers give 0 and whose last norm that is. Throws: unsupported for positions that are not sinusoidal, a gated
// feed-forward, untied tables, an odd width or a stack without layers.
Pretrained to_huggingface(const Transformer& model, const ToHuggingFaceOptions& options = {});

// What transformers needs beside the model: tokenizer.json with a post-processor that ends every text with </s>,
// tokenizer_config.json, and generation_config.json with the search that `multihead translate` makes by default.
// `from`: a folder of our own with a Transformer; `to`: where the model and those files go, and a README.md. `stored`:
// the type the matrices have in `from` where not given. Throws: as load_model_folder and to_huggingface; io.
Pretrained write_as_huggingface(const std::string& from, const std::string& to, std::optional<DType> stored = {});

}  // namespace mh
