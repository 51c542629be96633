// A translator in a folder: text in, text out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/decode/options.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// One way to translate a line.
struct Candidate : Hypothesis {
  std::string text{};
};

struct Translation {
  std::vector<Candidate> candidates{};  // best first; at least one
  int64_t source_tokens = 0;            // of the line, before any cut
  bool cut = false;                     // only the line's beginning fitted the model and was translated

  const std::string& text() const { return candidates.front().text; }
};

// What the decoder looked at in the source while it wrote a candidate.
struct CrossAttention {
  std::vector<std::string> source{}, target{};          // tokens as text, </s> last
  std::vector<int64_t> source_words{}, target_words{};  // of each token the word, counted by white space; -1: none
  Tensor weights{};                                     // f32 (H, target, source), rows of sum 1
};

// Pairs (source word, target word), ordered: for every word of the target the word of the source that got the most
// attention, over all heads.
std::vector<std::pair<int64_t, int64_t>> align_words(const CrossAttention& attention);

// Copies share the model; every method may be called from many threads at once.
//
// Text is UTF-8. Bytes that are not become U+FFFD, one for each run that could not begin or continue a character, on
// the way in and on the way out. A line of white space alone is translated to an empty one.
class Translator {
 public:
  // Reads FOLDER/model.safetensors and FOLDER/tokenizer.json. `compute`: the type of the products, f32 or bf16.
  // Throws: io, invalid_argument, unsupported; a sentence that names the file.
  static Translator load(const std::string& folder, DType compute = DType::f32);

  // In the order of the lines; options.batch.compute is not read. Throws: as search.
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options = {}) const;
  std::vector<Translation> sample(const std::vector<std::string>& lines, const SamplingOptions& options) const;
  std::string operator()(const std::string& line) const;

  // Of one decoder layer, counted from 0. Throws: invalid_argument where there is no such layer.
  CrossAttention cross_attention(const std::string& line, const Candidate& candidate, int64_t layer) const;
  int64_t decoder_layers() const;
  int64_t heads() const;

 private:
  struct Parts;
  explicit Translator(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
