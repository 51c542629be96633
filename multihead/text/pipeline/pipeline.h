// A tokenizer.json of any supported model: the way of a text through its steps to ids, and back.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/pipeline/added_tokens.h"
#include "multihead/text/pipeline/decoders.h"
#include "multihead/text/pipeline/normalisers.h"
#include "multihead/text/pipeline/splitters.h"
#include "multihead/text/pipeline/templates.h"
#include "multihead/text/pipeline/word_model.h"

namespace mh::detail {

struct Pipeline {
  std::string source;               // the file as it was read
  std::vector<std::string> tokens;  // by id
  std::vector<bool> special;        // by id
  std::vector<NormaliseStep> normalise;
  std::vector<SplitStep> split;
  std::unique_ptr<WordModel> model;
  AddedTokens raw, normalised;  // looked for before and behind the normalisers
  Templates templates;
  bool decodes = false;  // without a decoder tokens are joined by spaces
  std::vector<DecodeStep> decoders;

  // Appends the ids of a text without special tokens around it.
  void encode(std::string_view text, bool find_special, std::vector<int32_t>& out) const;
  // `ids` are tokens; special ones are skipped.
  std::string decode(const int32_t* ids, size_t count) const;
};

// Reads everything but the version. Throws: as Tokenizer::parse.
std::unique_ptr<Pipeline> read_pipeline(const JsonFields& top, std::string_view source);

}  // namespace mh::detail
