// Older tokenizer files put into the form of tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/text/legacy/piece_model.h"

namespace mh::detail {

// A token that is put around a text, or looked for in it: special, and by id.
using SpecialTokens = std::vector<std::pair<std::string, int32_t>>;

// "[CLS] A [SEP]" and "[CLS] A [SEP] B:1 [SEP]:1": special tokens, A and B, each with its type where that is not 0.
struct TemplateText {
  std::string single, pair;
};

// vocab.txt: a token a line.
struct BertVocabulary {
  std::vector<std::string> tokens{};
  bool lowercase = true, chinese = true;
  int strip_accents = -1;  // 0, 1, or -1: as `lowercase`
};

std::string bert_json(const BertVocabulary& vocabulary, const std::string& where);

// vocab.json and merges.txt, for GPT-2, RoBERTa and BART, or CLIP: which of them its tokens tell.
std::string byte_level_json(std::string_view vocabulary, std::string_view merges, const std::string& where);

// What a folder's tokenizer_config.json says of its SentencePiece model.
struct PieceFolder {
  std::string tokenizer_class{};  // of Hugging Face's, with or without "Fast"; empty: no special tokens are added
  std::string source_language{};  // src_lang; empty: the class's own
  std::string language_codes{};   // of M2M-100: "m2m100" or "wmt21"
  bool legacy_frame = false;      // of NLLB: the language stands behind the text
};

std::string piece_json(const PieceModel& model, const PieceFolder& folder, const std::string& where);

// Marian and M2M-100: the pieces of the source language, ids from vocab.json, the end of the sentence behind each text.
// Of M2M-100 the languages' tokens behind the vocabulary, and the source's before each text.
std::string paired_json(const PieceModel& source, std::string_view vocabulary, const PieceFolder& folder,
                        const std::string& where);

}  // namespace mh::detail
