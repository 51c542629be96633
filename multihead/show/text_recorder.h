// Recordings of any model that reads text, by its folder.
#pragma once

#include <memory>
#include <string>

#include "multihead/show/recording.h"

namespace mh {

// Copies share the model; every method may be called from many threads at once.
class TextRecorder {
 public:
  // A Hugging Face folder, one of sentence-transformers', or a language model, classifier or tagger of our own; of our
  // translators see record() of recording.h. Throws: as Pretrained::load, Tokenizer::load, load_language_model and
  // load_labelled_model; unsupported for a model that reads images, or has no attention that is recorded.
  static TextRecorder load(const std::string& folder);

  // One forward pass. Where `written` says nothing, a model with encoder and decoder writes as its folder wants it.
  // Throws: as record(); invalid_argument where the model reads pairs and there is none.
  Recording operator()(const RecordInput& input) const;

 private:
  struct Parts;
  explicit TextRecorder(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// Throws unsupported where folder_facts(folder) tells of a recurrent model, whose attention is not recorded.
void check_recorded(const std::string& folder);

}  // namespace mh
