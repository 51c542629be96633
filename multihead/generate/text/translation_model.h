// A model that translates, whatever it is made of: what the translator and the task ask of one, and its folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "multihead/generate/generation_config.h"
#include "multihead/generate/generator.h"
#include "multihead/models/model_file.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/models/recurrent_seq2seq.h"
#include "multihead/models/transformer.h"

namespace mh {

class TranslationModel {
 public:
  struct Facts {
    int64_t vocabulary = 0, max_length = 0;
    int64_t layers = 0, heads = 0;  // that look at the source; 0: none does
    int32_t begin = 0, end = 0;
  };
  virtual ~TranslationModel() = default;
  virtual Facts facts() const = 0;
  virtual const Generator& generator() const = 0;
  // Throws: unsupported for a model that is only run.
  virtual CrossEntropy loss(const PairBatch& batch, Pass& pass, float smoothing) const = 0;
  // What one layer looked at while writing `input`: f32 (H, Tq, Tk), of one sentence. Throws: invalid_argument where
  // there is no such layer.
  virtual Tensor looked_at(const TokenBatch& source, const TokenBatch& input, int64_t layer, Pass& pass) const = 0;
  // Runs the model over a sentence and what was written for it, so that the observer of `pass` hears of its attention.
  // Throws: unsupported for a model whose attention no observer hears.
  virtual void reread(const TokenBatch& source, const TokenBatch& input, Pass& pass) const = 0;
  virtual void pack(DType compute) = 0;
  // As save_transformer. Throws: also unsupported for a model that is only run.
  virtual void save(const std::string& path, const ModelFileOptions& options) const = 0;
};

// The model stays the caller's, or becomes the result's.
std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<Transformer> model);
std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<RecurrentSeq2Seq> model);
// An encoder-decoder of Hugging Face's, whose sources come with their special tokens. `decoder_start`: as
// PretrainedGenerator. Throws: alike; invalid_argument for one that reads no text.
std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<Pretrained> model, int32_t decoder_start = -1);

struct TranslationFolder {
  Tokenizer tokenizer{};
  std::unique_ptr<TranslationModel> model{};
  bool ours = true;  // else Hugging Face's
  // As load_text_tasks; of our own models a beam of 4 under "".
  std::map<std::string, TextTask> tasks{};
};

// As load_model_folder, of either kind of model; or a Hugging Face folder with a tokenizer, whose model writes one text
// from another. Its weights are laid out for products in `compute`. Throws: alike, and as Pretrained::load and
// Tokenizer::load.
TranslationFolder load_translation_folder(const std::string& folder, DType compute = DType::f32);

}  // namespace mh
