// Where the item that was left out stands among those its user has not had: by a model, by popularity, by neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/models/decoder_only.h"
#include "multihead/tasks/task.h"

namespace mh {

// An item, and what its user had before it, by id.
struct LeftOut {
  std::span<const int32_t> before{};
  int32_t item = 0;
};

// The ids of items are [first, end).
struct Catalogue {
  int32_t first = 0, end = 0;
};

// Logits of the next item of each history, f32 (histories, V): of the last row of "<s> items", cut at its beginning to
// the model's max_length.
Tensor next_item_logits(const DecoderOnly& model, std::span<const std::span<const int32_t>> histories, Pass& pass);

// The item's rank by `scores`, one for each id, among the items that are not in `before`, itself aside; of a tie it has
// the last place.
int64_t unseen_rank(std::span<const float> scores, const LeftOut& one, const Catalogue& catalogue);

struct ModelRanks {
  std::vector<int64_t> ranks{};
  double nats = 0;  // Σ -log p of the items, p over all ids
};
ModelRanks model_ranks(const DecoderOnly& model, std::span<const LeftOut> left_out, const Catalogue& catalogue,
                       DType compute);

// Baselines, of the same histories. Popularity: how often an item stands in all `before`.
std::vector<int64_t> popularity_ranks(std::span<const LeftOut> left_out, const Catalogue& catalogue);

// Item kNN: the sum over the last three items of a history of their cosine with an item,
//   users who had both / √(users who had one · users who had the other),   counted in all `before`.
std::vector<int64_t> neighbour_ranks(std::span<const LeftOut> left_out, const Catalogue& catalogue);

// {"ndcg@10", "hr@10"}, in percent.
Metrics metrics_of_ranks(std::span<const int64_t> ranks);

}  // namespace mh
