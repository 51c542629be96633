// A tagger in a folder: text in, entities with their places out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/dtype.h"

namespace mh {

struct TaggedSpan {
  std::string label{};        // the type of the entity, "PER"; "_" where tags have none
  size_t begin = 0, end = 0;  // bytes of the text
  float score = 0;            // the mean probability of its words' tags
};

struct Tagging {
  std::vector<std::string> words{}, tags{};  // of each word its most probable tag
  std::vector<TaggedSpan> entities{};        // in the order of the text
  bool cut = false;                          // the text was longer than the model reads: the rest is "O"
};

// Copies share the model; every method may be called from many threads at once.
class Tagger {
 public:
  // Reads FOLDER/model.safetensors and FOLDER/tokenizer.json. Throws: io, invalid_argument; a sentence that names the
  // file.
  static Tagger load(const std::string& folder, DType compute = DType::f32);

  // Of one text, cut into words and signs (words_of in text/learn_words.h), or of many. Throws: invalid_argument for a
  // text that is not UTF-8.
  Tagging operator()(std::string_view text) const;
  std::vector<Tagging> operator()(std::span<const std::string> texts) const;

  const std::vector<std::string>& labels() const;

 private:
  struct Parts;
  explicit Tagger(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
