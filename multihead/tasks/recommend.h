// Recommendation as a task: the next item of a history, by a causal Transformer (SASRec); leave-one-out, hit rate and
// NDCG over the whole catalogue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/models/language_model_file.h"
#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/data/histories.h"
#include "multihead/tasks/item_ranking.h"
#include "multihead/tasks/task.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

inline constexpr const char* kRecommend = "recommend";

// The last item of every history, and what was before it: what a recommender is tested on. Views of `histories`.
std::vector<LeftOut> last_items(const std::vector<std::vector<int32_t>>& histories);
// The last but one, of histories with three items or more: what it is validated on.
std::vector<LeftOut> last_but_one(const std::vector<std::vector<int32_t>>& histories);

// A recommender's, popularity's and item kNN's NDCG and hit rate, in percent: "ndcg@10", "popularity_ndcg@10", …, of
// the last items. Lays the model's weights out for inference.
Metrics score_histories(LanguageModelFolder& model, const std::vector<std::vector<int32_t>>& histories,
                        DType compute = DType::f32);

class RecommendTask : public Task {
 public:
  // Reads the data. Throws: as read_histories, settle_tokenizer and BatchOrder.
  explicit RecommendTask(const TaskSetup& setup);

  TaskFacts facts() const override;
  std::string digest() const override;
  std::string tokenizer() const override;
  int64_t batches(int64_t epochs) const override { return order_->in_epochs(epochs); }
  std::unique_ptr<Batch> batch(const Position& at) const override;
  Position after(const Position& at) const override { return order_->after(at); }
  void make_model(std::shared_ptr<ParamStore> store) override;
  // -log p of every item of a window, p over all ids; the first of a history behind <s>, others behind the item before.
  CrossEntropy loss(const Batch& batch, Pass& pass) const override;
  Verdict validate(const ValidateOptions& options) override;
  void begin(const std::string& folder) const override;
  void save(const std::string& folder) const override;

 private:
  // Items [begin, end) of a history, which are learned.
  struct Window {
    size_t user = 0, begin = 0, end = 0;
  };
  TransformerConfig model_config() const;

  const TaskSetup setup_;
  Tokenizer tokenizer_;
  std::vector<std::vector<int32_t>> histories_;  // by user
  std::vector<Window> windows_;
  std::vector<LeftOut> valid_;  // of histories_
  std::optional<BatchOrder> order_;
  std::optional<DecoderOnly> model_;
};

}  // namespace mh
