// A model that answers questions with a part of a text, in a folder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/dtype.h"

namespace mh {

struct Question {
  std::string question{}, context{};
};

struct AnswerOptions {
  int64_t max_length = 384;     // of a window, in tokens, question and special ones included
  int64_t stride = 128;         // tokens that a window has in common with the one before it
  int64_t longest_answer = 15;  // tokens
  bool no_answer = false;       // the text may have none: an empty answer wins where the model prefers its first token
};

struct Answer {
  std::string text{};         // whole words of the context; empty: there is none
  size_t begin = 0, end = 0;  // bytes of the context
  float score = 0;            // start's probability · end's, each over the tokens of a window
};

// Copies share the model; every method may be called from many threads at once.
class Answerer {
 public:
  // A Hugging Face folder with a question answerer. Throws: io, invalid_argument, unsupported; a sentence that names
  // the file, or the verb that the folder is for.
  static Answerer load(const std::string& folder, DType compute = DType::f32);

  // The best part of each context. A context longer than a window is read in several, and the best of all counts;
  // windows are shortened to what the model reads, and strides to half a window. Probabilities as in transformers'
  // pipeline. Throws: invalid_argument for a text that is not UTF-8, options below 1 (a stride below 0), and a question
  // that leaves no place for the context.
  Answer operator()(std::string_view question, std::string_view context, const AnswerOptions& options = {}) const;
  std::vector<Answer> operator()(std::span<const Question> questions, const AnswerOptions& options = {}) const;

 private:
  struct Parts;
  explicit Answerer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
