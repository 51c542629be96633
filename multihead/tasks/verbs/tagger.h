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

// How the probabilities of tokens become tags, named as transformers names them.
//   none: each token by itself
//   simple: likewise, and neighbours of one type are one entity
//   first: a word has the tag of its first token
//   average: the tag whose mean probability over the word's tokens is the highest
//   max: the tag of the word's token that is surest
// Neighbours of one type are one entity but in none; a B- begins a new one.
enum class Aggregation { none, simple, first, average, max };

struct TagOptions {
  Aggregation aggregation = Aggregation::first;
  int64_t stride = 128;  // tokens that neighbouring windows of a long text share
};

struct TaggedSpan {
  std::string label{};        // the type of the entity, "PER"; of none the tag, "B-PER"
  size_t begin = 0, end = 0;  // bytes of the text, without white space at their ends
  float score = 0;            // the mean probability of its words' tags, or its tokens'
};

struct Tagging {
  std::vector<std::string> words{}, tags{};  // of each word its tag; with none and simple of each token
  std::vector<TaggedSpan> entities{};        // in the order of the text
  bool cut = false;                          // the text was longer than the model reads: the rest is "O"
};

// Copies share the model; every method may be called from many threads at once.
//
// A folder of Hugging Face's reads the text as it is, as transformers' TokenClassificationPipeline does, with the same
// words and entities. Words: a tokenizer whose tokens are marked (Tokenizer::marks_words) has its own; another's are
// what spaces part, so that "Rome." is one word there, with the tag of "Rome" (simple judges the "." for itself).
// A longer text than the model reads is cut into windows that overlap, by at most half a window; a token is judged in
// the window where the nearer end is farthest, so that an entity is found once, wherever windows end. So are folders
// that the task `tag` has trained: it reads the words of a sentence with a space between them (encode_sentence in
// tasks/tag.h).
//
// A model of our own reads words and signs one by one (words_of in text/learn_words.h), as it was trained, and judges
// a word by its first token whatever the aggregation; what it has no place for is cut. Its entities are seqeval's
// (metrics/entities.h).
class Tagger {
 public:
  // Reads FOLDER/model.safetensors and FOLDER/tokenizer.json. Throws: io, invalid_argument; a sentence that names the
  // file.
  static Tagger load(const std::string& folder, DType compute = DType::f32);

  // Of one text, or of many. Throws: invalid_argument for a text that is not UTF-8, and a stride below 0.
  Tagging operator()(std::string_view text, const TagOptions& options = {}) const;
  std::vector<Tagging> operator()(std::span<const std::string> texts, const TagOptions& options = {}) const;

  const std::vector<std::string>& labels() const;
  // Tensors of the folder that the model does not read.
  const std::vector<std::string>& unused() const;

 private:
  struct Parts;
  explicit Tagger(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
