// Translation as a task: sentence pairs in, a loss over target tokens, BLEU and chrF of what the model writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "multihead/generate/text/translation_model.h"
#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/data/corpus.h"
#include "multihead/tasks/task.h"

namespace mh {

struct TranslationScoreOptions {
  int64_t tokens_per_batch = 4096;
  int64_t sentences = 0;  // how many are translated for BLEU and chrF, greedily; 0: none
  DType compute = DType::f32;
};

struct TranslationScores {
  double loss = 0, perplexity = 0;  // of the plain negative log-likelihood per token
  double bleu = -1, chrf = -1;      // where sentences were translated: not by a model whose scores are not finite
};

// Of the validation pairs. Lays the model's weights out for inference.
TranslationScores score_translation(TranslationModel& model, const Corpus& corpus,
                                    const TranslationScoreOptions& options);
TranslationScores score_translation(Transformer& model, const Corpus& corpus, const TranslationScoreOptions& options);

class TranslationTask : public Task {
 public:
  // Reads the data. Throws: as read_corpus and BatchOrder.
  explicit TranslationTask(const TaskSetup& setup);

  TaskFacts facts() const override;
  std::string digest() const override { return corpus_.train.digest(); }
  std::string tokenizer() const override;
  int64_t batches(int64_t epochs) const override { return order_.in_epochs(epochs); }
  std::unique_ptr<Batch> batch(const Position& at) const override;
  Position after(const Position& at) const override { return order_.after(at); }
  void make_model(std::shared_ptr<ParamStore> store) override;
  CrossEntropy loss(const Batch& batch, Pass& pass) const override;
  Verdict validate(const ValidateOptions& options) override;
  void begin(const std::string& folder) const override;
  void save(const std::string& folder) const override;

 private:
  const TaskSetup setup_;
  const Corpus corpus_;
  const BatchOrder order_;
  std::unique_ptr<TranslationModel> model_;
};

}  // namespace mh
