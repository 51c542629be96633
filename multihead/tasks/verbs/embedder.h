// An embedder in a folder: texts in, a vector for each out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

struct Embeddings {
  Tensor vectors{};           // f32 (texts, width), in the order of the texts
  std::vector<size_t> cut{};  // numbers of the texts that were longer than the model reads
};

// Copies share the model; every method may be called from many threads at once.
class Embedder {
 public:
  // A folder of sentence-transformers' (modules.json: Transformer, Pooling, Dense, Normalize), or any Hugging Face
  // encoder, whose rows are averaged. `compute`: the type of the products, f32 or bf16. Throws: io, invalid_argument,
  // unsupported; a sentence that names the file.
  static Embedder load(const std::string& folder, DType compute = DType::f32);

  // Each text behind the prompt. A vector has the same bits alone or among others. Throws: invalid_argument for a text
  // that is not UTF-8. The first form: (width).
  Tensor operator()(std::string_view text) const;
  Embeddings operator()(std::span<const std::string> texts) const;  // with the default prompt
  Embeddings operator()(std::span<const std::string> texts, const std::string& prompt) const;

  int64_t width() const;
  int64_t max_length() const;  // of a text, in tokens
  bool is_plain() const;       // no modules.json: it is this class that says "mean"
  // By name, as config_sentence_transformers.json has them; the default is empty text where it names none.
  const std::map<std::string, std::string>& prompts() const;
  const std::string& default_prompt() const;
  // Throws: invalid_argument, with their names, where there is none of this name.
  const std::string& prompt(const std::string& name) const;
  const std::string& similarity() const;  // "cosine" where the folder names none
  // A hash of the tokenizer, the longest text and the vector of a fixed text: of what vectors depend on, as far as that
  // shows there.
  std::string fingerprint() const;

 private:
  struct Parts;
  explicit Embedder(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
