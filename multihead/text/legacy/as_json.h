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

// A SentencePiece model for the tokenizer class of Hugging Face's that a folder names, with or without "Fast"; an empty
// name adds no special tokens.
std::string piece_json(const PieceModel& model, std::string_view tokenizer_class, const std::string& where);

// Marian and M2M: the pieces of the source language, ids from vocab.json, the end of the sentence behind each text.
std::string paired_json(const PieceModel& source, std::string_view vocabulary, const std::string& where);

}  // namespace mh::detail
