// Recordings of models in Hugging Face's folders.
#pragma once

#include <string>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/show/recording.h"
#include "multihead/text/tokenizer.h"

namespace mh {

// Of each token its text: as it stands in the first text or the pair; those that were put around them as they are
// spelled. Words of the pair are counted behind those of the first text.
RecordedText recorded_text(const std::string& name, const Tokenizer& tokenizer, const Encoded& encoded,
                           const RecordInput& input);

// One forward pass over the text, or the pair, with special tokens, cut to what the model reads; of a model with
// encoder and decoder the latter reads its start token and `written`. Throws: as Pretrained::forward and
// Tokenizer::encode_input; invalid_argument where there is no token, where `written` is given and the model has no
// decoder behind an encoder, and where it reads images.
Recording record(const Pretrained& model, const Tokenizer& tokenizer, const RecordInput& input);

}  // namespace mh
