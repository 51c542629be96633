// A Hugging Face folder's encoder with its tokenizer: what the tasks that embed, fill and answer have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/text/tokenizer.h"

namespace mh {

struct TextEncoder {
  Tokenizer tokenizer;
  Pretrained model;
  int64_t longest;  // of a sequence, in tokens: what the model's positions and the tokenizer's model_max_length allow
  DType compute;
};

// Throws: io, naming the verb to use, where `head` is given and the folder has another; as folder_facts,
// Tokenizer::load and Pretrained::load; unsupported for a model that does not read text alone.
TextEncoder load_text_encoder(const std::string& folder, HeadKind head, DType compute);
// The same for any head: the body is what counts.
TextEncoder load_text_encoder(const std::string& folder, DType compute);

// encode_input, cut to max_length. Never empty: a text without a token has the unknown
// word, or id 0. `cut`: whether text was cut. Throws: invalid_argument for text that is not UTF-8.
Encoded encode_whole(const Tokenizer& tokenizer, std::string_view text, int64_t max_length, bool& cut);

// Calls run(numbers of sequences) for all of them, those of similar length together, with about `tokens` tokens a
// call, in ascending order of length.
void in_batches(std::span<const Encoded> sequences, int64_t tokens,
                const std::function<void(std::span<const size_t> which)>& run);

// What the model reads of those sequences.
ModelInputs inputs_of(const Architecture& model, std::span<const Encoded> sequences, std::span<const size_t> which);

// The body's last rows, f32 (rows, width), without what pooler and head would make of them.
Tensor body_rows(const TextEncoder& encoder, const ModelInputs& inputs);

}  // namespace mh
