// Recordings of models in Hugging Face's folders.
#pragma once

#include <string>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/show/recording.h"
#include "multihead/text/tokenizer.h"

namespace mh {

// Whether FOLDER/config.json is there: a model in Hugging Face's form, not one of our own.
bool is_pretrained(const std::string& folder);

// One forward pass over the text with its special tokens; of a model with encoder and decoder the latter reads its
// start token and `written`. Throws: as Pretrained::forward and Tokenizer::encode_input; invalid_argument where the
// model reads images.
Recording record(const Pretrained& model, const Tokenizer& tokenizer, const std::string& text,
                 const std::string& written = "");
// The same of FOLDER and its tokenizer.json. Throws: as Pretrained::load and Tokenizer::load, too.
Recording record_pretrained(const std::string& folder, const std::string& text, const std::string& written = "");

}  // namespace mh
