// All that search and sampling need of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "multihead/nn/pass.h"
#include "multihead/ops/products/linear_top_k.h"

namespace mh {

using Prompts = std::vector<std::vector<int32_t>>;  // ids without special tokens

// A prompt is what a text is written from: the source of a translation, or the beginning of a text. Methods may be
// called from several threads at once, with a state each.
class Generator {
 public:
  struct Limits {
    int64_t vocabulary = 0;
    int64_t fewest = 0, most = 0;  // tokens of a prompt
    int32_t end = 0;               // the token that ends a text; -1: none does
    // Whether WritingRules::length_factor and length_offset bound what is written, as they do a translation.
    bool prompt_bounds_length = false;
    int64_t prompt_vocabulary = 0;  // of the tokens of a prompt; 0: the same
  };

  // What is kept between steps: a number of hypotheses for every prompt, one at first.
  class State {
   public:
    virtual ~State() = default;
    // Continues with these hypotheses, named by their numbers of the last step, in the order of their prompts;
    // `counts[b]` of them belong to prompt b (0: it is done).
    virtual void choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& counts) = 0;
    virtual int64_t hypotheses() const = 0;
    std::vector<int32_t> first{};  // what the first step is given, one token per prompt
  };

  virtual ~Generator() = default;
  virtual Limits limits() const = 0;
  // The most tokens, the end counted, that may be written for a prompt of so many.
  virtual int64_t most_written(int64_t prompt) const = 0;
  // What stands in the text before anything is written: the beginning token of a translation, or the prompt with the
  // token that begins it.
  virtual std::vector<int32_t> prefix(const std::vector<int32_t>& prompt) const { return prompt; }
  // Room for prompts of so many tokens and up to `width` hypotheses of each, of up to `longest` tokens.
  virtual int64_t room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) const = 0;
  // Reads the prompts.
  virtual std::unique_ptr<State> begin(const Prompts& prompts, int64_t room, Pass& pass) const = 0;
  // One token further: `ids` are the last tokens of the hypotheses; rows before the output projection, one for each.
  virtual Tensor step(State& state, const std::vector<int32_t>& ids, Pass& pass) const = 0;
  virtual Tensor logits(const Tensor& rows) const = 0;  // f32 (rows, vocabulary)
  // The k best of logits(rows), which need not be held whole.
  virtual TopK top(const Tensor& rows, int64_t k) const = 0;
};

}  // namespace mh
