// A model that continues texts, in a folder: a prompt in, the text behind it out, as it is written.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/generate/generation_config.h"

namespace mh {

// What is written behind a prompt.
struct Continuation : Hypothesis {
  std::string text{};
};

// Hears of text as soon as it is written, in whole characters: in order for each prompt, from several threads at once.
using OnText = std::function<void(size_t prompt, std::string_view text)>;

// Copies share the model; every method may be called from many threads at once. Text is UTF-8.
class TextGenerator {
 public:
  // A language model of our own (model.safetensors and tokenizer.json), or a Hugging Face folder with a tokenizer.json
  // whose model continues text or writes one text from another. `compute`: the type of the products, f32 or bf16.
  // Throws: io, invalid_argument, unsupported; a sentence that names the file.
  static TextGenerator load(const std::string& folder, DType compute = DType::f32);

  // How the folder wants it to write: its generation_config.json; our own models sample, with their own probabilities,
  // up to the longest text they can read.
  const GenerationConfig& defaults() const;

  // Of every prompt the continuations, best first or in the order drawn; batch.compute of the options is not read.
  // Throws: as search and sample; invalid_argument for a prompt that is not UTF-8, and where `on_text` is given and
  // `how` asks for a beam or for several samples.
  std::vector<std::vector<Continuation>> write(const std::vector<std::string>& prompts, const GenerationConfig& how,
                                               const OnText& on_text = {}) const;
  // Whether the prompt is the beginning of the text; else, as with T5, what is written stands alone.
  bool continues() const;
  // One prompt, as the folder wants it.
  std::string operator()(const std::string& prompt) const;

 private:
  struct Parts;
  explicit TextGenerator(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
