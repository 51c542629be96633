// Histories to windows, batches and losses; the items left out against all others.
#include "multihead/tasks/recommend.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/hash.h"
#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/settle_tokenizer.h"
#include "multihead/tasks/task_type.h"

namespace mh {

namespace {

struct ItemsOfOneBatch : Batch {
  int64_t tokens() const override { return labels.count(); }
  TokenBatch input{};
  Tensor labels{};  // i32 (rows)
};

Catalogue catalogue_of(const Tokenizer& tokenizer) { return {first_item(tokenizer), tokenizer.size()}; }

void check_recommending(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  const auto absent = [](bool absent, const char* key) {
    check(absent,
          "config: data.{} is given, and a recommender is judged by the last items of every history; expected none",
          key);
  };
  absent(data.train_target.empty(), "train_target");
  absent(data.valid.empty(), "valid");
  absent(data.valid_target.empty(), "valid_target");
  absent(data.hold_out == 0, "hold_out");
  absent(data.hold_out_share == 0, "hold_out_share");
  check(!data.user.empty() && !data.item.empty(), "config: data.{} is empty; expected a column's number or name",
        data.user.empty() ? "user" : "item");
  check(data.user != data.item && data.user != data.time && data.item != data.time,
        "config: data.user is column {}, data.item {}, data.time {}; expected different columns", data.user, data.item,
        data.time);
  const std::string& metric = setup.task.metric;
  check(metric.empty() || metric == "ndcg@10" || metric == "hr@10" || metric == "loss",
        "config: task.metric is \"{}\"; expected \"ndcg@10\", \"hr@10\" or \"loss\"", metric);
}

StartModel start_of_recommender(const std::string& path) {
  const LanguageModelFolder found = load_language_model(std::filesystem::path(path).parent_path().string(), kRecommend);
  return {.config = found.config,
          .weights = found.model.params().values(),
          .metadata = {{kConfigKey, config_to_json(found.config)}, {kTokenizerKey, tokenizer_hash(found.tokenizer)}}};
}

}  // namespace

TaskType recommend_type() {
  return {
      .kind = TaskKind::recommend,
      .name = kRecommend,
      .learns = "the next item of a history, by a decoder alone",
      .examples = "histories (rows of user, item, time)",
      .model = kRecommend,
      .use = "recommend FOLDER < HISTORIES",
      .encoder = false,
      .judges_itself = true,
      .check = check_recommending,
      .start = start_of_recommender,
      .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> { return std::make_unique<RecommendTask>(setup); }};
}

std::vector<LeftOut> last_items(const std::vector<std::vector<int32_t>>& histories) {
  std::vector<LeftOut> out;
  for (const std::vector<int32_t>& items : histories)
    if (items.size() >= 2) out.push_back({std::span(items).first(items.size() - 1), items.back()});
  return out;
}

std::vector<LeftOut> last_but_one(const std::vector<std::vector<int32_t>>& histories) {
  std::vector<LeftOut> out;
  for (const std::vector<int32_t>& items : histories)
    if (items.size() >= 3) out.push_back({std::span(items).first(items.size() - 2), items[items.size() - 2]});
  return out;
}

Metrics score_histories(LanguageModelFolder& model, const std::vector<std::vector<int32_t>>& histories, DType compute) {
  const std::vector<LeftOut> left_out = last_items(histories);
  const Catalogue catalogue = catalogue_of(model.tokenizer);
  model.model.pack(compute);
  Metrics out = metrics_of_ranks(model_ranks(model.model, left_out, catalogue, compute).ranks);
  const auto add = [&](const std::string& whose, const std::vector<int64_t>& ranks) {
    for (const auto& [name, value] : metrics_of_ranks(ranks)) out.emplace_back(whose + "_" + name, value);
  };
  add("popularity", popularity_ranks(left_out, catalogue));
  add("knn", neighbour_ranks(left_out, catalogue));
  return out;
}

RecommendTask::RecommendTask(const TaskSetup& setup) : setup_(setup) {
  const DataConfig& data = setup.data;
  const bool has_vocabulary = !setup.tokenizer_file.empty() || !setup.tokenizer.path.empty();
  if (has_vocabulary) tokenizer_ = detail::settle_tokenizer(setup, [] { return std::vector<std::string>(); });
  const Histories read = read_histories(data.train, data, {.vocabulary = has_vocabulary ? &tokenizer_ : nullptr});
  if (setup.events.on_message)
    for (const std::string& sentence : read.report) setup.events.on_message(sentence);
  if (!has_vocabulary) tokenizer_ = item_tokenizer(read);
  histories_ = item_ids(read, tokenizer_);
  valid_ = last_but_one(histories_);
  const auto longest = static_cast<size_t>(setup.max_length());
  std::vector<ExampleLength> lengths;
  for (size_t user = 0; user < histories_.size(); ++user) {
    // The last two items are left out; of a history of two, the last.
    const size_t items = histories_[user].size();
    for (size_t end = std::max<size_t>(items - 2, 1); end > 0;) {
      const size_t begin = end - std::min(end, longest);
      windows_.push_back({user, begin, end});
      lengths.push_back({1, static_cast<int64_t>(end - begin)});
      end = begin;
    }
  }
  order_.emplace(
      std::move(lengths),
      OrderOptions{.tokens_per_batch = data.examples_per_batch, .window = data.examples_per_batch, .seed = setup.seed});
}

TransformerConfig RecommendTask::model_config() const {
  TransformerConfig out = setup_.model;
  out.vocabulary = tokenizer_.size();
  return out;
}

TaskFacts RecommendTask::facts() const {
  const std::string metric = setup_.task.metric.empty() ? "ndcg@10" : setup_.task.metric;
  int64_t items = 0;
  for (const Window& each : windows_) items += static_cast<int64_t>(each.end - each.begin);
  const Catalogue catalogue = catalogue_of(tokenizer_);
  return {.examples =
              fmt::format("windows of {} histories of {} items", histories_.size(), catalogue.end - catalogue.first),
          .counted = "items",
          .watched = {.metric = metric, .higher_is_better = metric != "loss"},
          .train = static_cast<int64_t>(windows_.size()),
          .valid = static_cast<int64_t>(valid_.size()),
          .tokens = items,
          .source_tokens = 0,
          .vocabulary = tokenizer_.size()};
}

std::string RecommendTask::digest() const {
  detail::Hash hash;
  for (const Window& each : windows_)
    hash.add(std::as_bytes(std::span(histories_[each.user]).subspan(each.begin, each.end - each.begin)));
  return hash.digits();
}

std::string RecommendTask::tokenizer() const { return tokenizer_hash(tokenizer_); }

std::unique_ptr<Batch> RecommendTask::batch(const Position& at) const {
  auto out = std::make_unique<ItemsOfOneBatch>();
  std::vector<std::vector<int32_t>> input;
  std::vector<int32_t> labels;
  for (const int64_t n : order_->examples(at)) {
    const Window& window = windows_[static_cast<size_t>(n)];
    const std::vector<int32_t>& items = histories_[window.user];
    input.emplace_back();
    for (size_t i = window.begin; i < window.end; ++i) {
      input.back().push_back(i == 0 ? setup_.model.begin : items[i - 1]);
      labels.push_back(items[i]);
    }
  }
  out->input = token_batch(input);
  out->labels = tensor<int32_t>(labels, {static_cast<int64_t>(labels.size())});
  return out;
}

void RecommendTask::make_model(std::shared_ptr<ParamStore> store) {
  model_.emplace(decoder_only_config(model_config()), std::move(store));
}

CrossEntropy RecommendTask::loss(const Batch& batch, Pass& pass) const {
  const auto& given = dynamic_cast<const ItemsOfOneBatch&>(batch);
  return model_->loss(given.input, given.labels, pass, setup_.smoothing);
}

Verdict RecommendTask::validate(const ValidateOptions& options) {
  model_->pack(options.compute);
  const ModelRanks found = model_ranks(*model_, valid_, catalogue_of(tokenizer_), options.compute);
  Verdict out{.metrics = metrics_of_ranks(found.ranks)};
  out.metrics.emplace_back("loss", found.nats / static_cast<double>(valid_.size()));
  out.watch(facts().watched.metric);
  return out;
}

void RecommendTask::begin(const std::string& folder) const {
  write_durably(folder + "/tokenizer.json", tokenizer_.json());
}

void RecommendTask::save(const std::string& folder) const {
  save_language_model(folder, *model_, model_config(), tokenizer_, kRecommend);
}

}  // namespace mh
