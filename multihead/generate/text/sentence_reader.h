// A sentence as the ids that a translator reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "multihead/generate/generation_config.h"
#include "multihead/generate/text/languages.h"
#include "multihead/generate/text/translation_model.h"
#include "multihead/generate/text/translator.h"

namespace mh::detail {

// What stands around every sentence, beyond what the tokenizer puts there.
struct SourceFrame {
  std::string prefix{};
  int32_t language = -1;  // in the place of the language that the tokenizer puts there; where it puts none, in front
  int32_t first = -1;     // in front of all
  int64_t most = 0;       // ids; 0: as many as the model reads
};

struct ReadSentence {
  std::vector<int32_t> ids{};  // those that fit the model, as its Generator takes them
  int64_t tokens = 0;          // before any cut
};

class SentenceReader {
 public:
  // Takes the folder's tokenizer; its model outlives the reader.
  explicit SentenceReader(const TranslationFolder& folder);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Languages& languages() const { return languages_; }

  // What the languages ask for around the source. Throws: invalid_argument for a language, or a pair of them, that the
  // model does not know.
  SourceFrame frame(const LanguagePair& pair) const;
  // The token that everything written begins with, for the language wanted; -1: none. Throws: alike.
  int32_t target(const LanguagePair& pair) const;
  // The task of the folder's that is named after the languages; "" where none is.
  std::string task(const LanguagePair& pair) const;

  ReadSentence read(const std::string& sentence, const SourceFrame& frame) const;
  // `ids` as the encoder reads them.
  std::vector<int32_t> whole(std::vector<int32_t> ids) const;
  // Without characters that are there in part; ids that are no tokens add nothing.
  std::string text(const std::vector<int32_t>& ids) const;

 private:
  Encoded encoded(const std::string& text, const SourceFrame& frame, int64_t most) const;
  std::vector<int32_t> framed(const Encoded& encoded, const SourceFrame& frame) const;
  Tokenizer tokenizer_;
  const TranslationModel& model_;
  bool ours_;
  Languages languages_{};
  std::map<std::string, TextTask> tasks_;
};

}  // namespace mh::detail
