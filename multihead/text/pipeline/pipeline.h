// A tokenizer.json of any supported model: the way of a text through its steps to ids, and back.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/pipeline/added_tokens.h"
#include "multihead/text/pipeline/decoders.h"
#include "multihead/text/pipeline/document.h"
#include "multihead/text/pipeline/margins.h"
#include "multihead/text/pipeline/models/word_model.h"
#include "multihead/text/pipeline/normalisers.h"
#include "multihead/text/pipeline/splitters.h"
#include "multihead/text/pipeline/templates.h"

namespace mh::detail {

// One text as tokens: by token its id, its place in the text, the number of the word it belongs to.
struct Sequence {
  std::vector<int32_t> ids;
  std::vector<TextSpan> offsets;
  std::vector<int32_t> words;
  std::vector<bool> added;  // found in the text as an added token
};

struct Pipeline {
  std::string source;               // the file as it was read
  std::vector<std::string> tokens;  // by id
  std::vector<bool> special;        // by id
  std::vector<Margins> margins;     // by id; empty where the templates do not ask for them
  std::vector<NormaliseStep> normalise;
  std::vector<SplitStep> split;
  std::unique_ptr<WordModel> model;
  uint64_t number = 0;          // of the model, for its cache of words
  AddedTokens raw, normalised;  // looked for before and behind the normalisers
  Templates templates;
  bool decodes = false;  // without a decoder tokens are joined by spaces
  std::vector<DecodeStep> decoders;

  // The tokens of a text without special tokens around it. Offsets are those of the bytes that were given; what is not
  // well-formed UTF-8 there counts as U+FFFD. Throws: invalid_argument for a text of 2 GiB or more.
  Sequence encode(std::string_view text, bool find_special) const;
  // The ids alone. Appends.
  void encode(std::string_view text, bool find_special, std::vector<int32_t>& out) const;
  // `ids` are tokens; special ones are skipped.
  std::string decode(const int32_t* ids, size_t count) const;

 private:
  void cut(std::string_view text, bool find_special, Document& out) const;
  template <class Each>
  void each_token(const Document& document, Each&& each) const;
};

// Reads everything but the version. Throws: as Tokenizer::parse.
std::unique_ptr<Pipeline> read_pipeline(const JsonFields& top, std::string_view source);

}  // namespace mh::detail
