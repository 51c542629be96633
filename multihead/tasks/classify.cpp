// Rows to batches and losses; what a classifier says against what is right.
#include "multihead/tasks/classify.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/class_loss.h"
#include "multihead/tasks/settle_tokenizer.h"
#include "multihead/tasks/task_type.h"

namespace mh {

namespace {

constexpr const char* kClassify = "classify";
constexpr int64_t kMostInMatrix = 10'000;  // classes of a confusion matrix

std::vector<int32_t> classes_of(const LabelledTexts& texts, const Labels& labels) {
  std::vector<int32_t> out;
  for (size_t n = 0; n < texts.rows.size(); ++n) out.push_back(labels.require(texts.rows[n].label, texts.where(n)));
  return out;
}

Labels labels_of(const LabelledTexts& texts) {
  std::vector<std::string> names;
  for (const LabelledText& row : texts.rows) names.push_back(row.label);
  Labels out(std::move(names));
  check(out.size() >= 2, "{}: every row has the label '{}'; expected two labels or more", texts.name, out.name(0));
  return out;
}

std::unique_ptr<TextsOfOneBatch> pack(const EncodedTexts& texts, const std::vector<int32_t>& classes,
                                      std::span<const int64_t> numbers) {
  std::vector<int32_t> ids, types;
  std::vector<int64_t> lengths;
  auto out = std::make_unique<TextsOfOneBatch>();
  for (const int64_t n : numbers) {
    ids.insert(ids.end(), texts.ids(n).begin(), texts.ids(n).end());
    types.insert(types.end(), texts.types(n).begin(), texts.types(n).end());
    lengths.push_back(static_cast<int64_t>(texts.ids(n).size()));
    out->references.push_back(classes[static_cast<size_t>(n)]);
  }
  const auto rows = static_cast<int64_t>(ids.size());
  out->texts = {tensor<int32_t>(ids, {rows}), Sequences::of_lengths(lengths)};
  out->types = tensor<int32_t>(types, {rows});
  return out;
}

ClassScores scores_of(TextModel& model, const EncodedTexts& texts, const std::vector<int32_t>& classes,
                      const ClassScoreOptions& options) {
  model.pack(options.compute);
  ClassScores out{.classes = model.classes()};
  for (int64_t begin = 0; begin < texts.size();) {
    std::vector<int64_t> numbers;
    int64_t filled = 0;
    for (int64_t n = begin; n < texts.size(); ++n) {
      const auto length = static_cast<int64_t>(texts.ids(n).size());
      if (filled > 0 && filled + length > options.tokens_per_batch) break;
      numbers.push_back(n);
      filled += length;
    }
    begin += static_cast<int64_t>(numbers.size());
    const auto batch = pack(texts, classes, numbers);
    Pass pass = Pass::inference(options.compute);
    const Tensor logits = model.logits(batch->texts, batch->types, pass);
    out.add(logits, batch->references);
  }
  return out;
}

void check_columns(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  check(data.train_target.empty() && data.valid_target.empty(),
        "config: data.{} is given, and texts with labels stand in one file; expected none",
        data.train_target.empty() ? "valid_target" : "train_target");
  check(!data.text.empty() && !data.label.empty(), "config: data.{} is empty; expected a column's number or name",
        data.text.empty() ? "text" : "label");
  check(data.text != data.label && data.pair != data.text && data.pair != data.label,
        "config: data.text is column {}, data.label {}{}; expected different columns", data.text, data.label,
        data.pair.empty() ? "" : ", data.pair " + data.pair);
  const std::string& metric = setup.task.metric;
  check(metric.empty() || metric == "accuracy" || metric == "macro_f1" || metric == "matthews" || metric == "loss",
        "config: task.metric is \"{}\"; expected \"accuracy\", \"macro_f1\", \"matthews\" or \"loss\"", metric);
  check(setup.model.encoder_layers >= 1, "config: model.encoder_layers is 0; a classifier expects 1 or more");
}

}  // namespace

TaskType classify_type() {
  return {
      .kind = TaskKind::classify,
      .name = kClassify,
      .learns = "the label of a text or of a pair of texts, by an encoder",
      .examples = "texts with labels",
      .model = kClassify,
      .use = "classify FOLDER < LINES",
      .decoder = false,
      .families = true,
      .check = check_columns,
      .start = [](const std::string& path) { return start_of_labelled_model(path, kClassify); },
      .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> { return std::make_unique<ClassifyTask>(setup); }};
}

Metrics ClassScores::metrics() const {
  Metrics out{{"accuracy", accuracy(predictions, references)}};
  if (classes <= kMostInMatrix) {
    const ConfusionMatrix matrix = confusion_matrix(predictions, references, classes);
    out.emplace_back("macro_f1", macro_f1(matrix));
    out.emplace_back("matthews", matthews_correlation(matrix));
  }
  out.emplace_back("loss", loss);
  return out;
}

void ClassScores::add(const Tensor& logits, const std::vector<int32_t>& right) {
  const auto before = static_cast<double>(references.size()), more = static_cast<double>(right.size());
  const Tensor targets = tensor<int32_t>(right, {static_cast<int64_t>(right.size())});
  loss = (loss * before + cross_entropy(logits, targets).nll.item({})) / std::max(1.0, before + more);
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const float* z = logits.data<float>() + row * classes;
    predictions.push_back(static_cast<int32_t>(std::max_element(z, z + classes) - z));
  }
  references.insert(references.end(), right.begin(), right.end());
}

LabelledModel load_classifier(const std::string& folder) { return load_labelled_model(folder, kClassify); }

ClassScores score_classes(LabelledModel& model, const LabelledTexts& texts, const ClassScoreOptions& options) {
  const std::vector<int32_t> classes = classes_of(texts, model.labels);
  const EncodedTexts encoded(texts, model.tokenizer, model.max_length);
  return scores_of(model.model, encoded, classes, options);
}

ClassifyTask::ClassifyTask(const TaskSetup& setup) : setup_(detail::with_tokenizer_of_start(setup)) {
  const DataConfig& data = setup.data;
  LabelledTexts train = read_labelled(data.train, data), valid;
  if (!data.valid.empty()) valid = read_labelled(data.valid, data);
  if (data.valid.empty() && data.validates()) valid = train.hold_out(data.held_out(train.size()));
  if (setup.events.on_message)
    for (const LabelledTexts* texts : {&train, &valid})
      for (const std::string& sentence : texts->report) setup.events.on_message(sentence);
  labels_ = labels_of(train);
  train_classes_ = classes_of(train, labels_);
  valid_classes_ = classes_of(valid, labels_);
  tokenizer_ = detail::settle_tokenizer(
      setup_,
      [&] {
        std::vector<std::string> lines;
        for (const LabelledText& row : train.rows) {
          lines.push_back(row.text);
          if (!row.pair.empty()) lines.push_back(row.pair);
        }
        return lines;
      },
      false);
  train_ = EncodedTexts(train, tokenizer_, setup.max_length());
  valid_ = EncodedTexts(valid, tokenizer_, setup.max_length());
  if (setup.task.class_weights == ClassWeights::balanced) weights_ = balanced_weights(train_classes_, labels_.size());
  std::vector<ExampleLength> lengths;
  for (int64_t n = 0; n < train_.size(); ++n) lengths.push_back({1, static_cast<int64_t>(train_.ids(n).size())});
  // A window as large as a batch: without padding there is nothing to gain from texts of one length.
  order_.emplace(
      std::move(lengths),
      OrderOptions{.tokens_per_batch = data.examples_per_batch, .window = data.examples_per_batch, .seed = setup.seed});
}

TaskFacts ClassifyTask::facts() const {
  const std::string metric = setup_.task.metric.empty() ? "accuracy" : setup_.task.metric;
  return {.examples = fmt::format("texts with {} labels", labels_.size()),
          .counted = "texts",
          .watched = {.metric = metric, .higher_is_better = metric != "loss"},
          .train = train_.size(),
          .valid = valid_.size(),
          .tokens = train_.size(),
          .source_tokens = train_.tokens(),
          .vocabulary = tokenizer_.size(),
          .model = model_ ? model_->summary() : ""};
}

std::string ClassifyTask::digest() const { return train_.digest(); }

std::string ClassifyTask::tokenizer() const { return tokenizer_hash(tokenizer_); }

std::unique_ptr<Batch> ClassifyTask::batch(const Position& at) const {
  return pack(train_, train_classes_, order_->examples(at));
}

void ClassifyTask::make_model(std::shared_ptr<ParamStore> store) {
  model_.emplace(make_text_model(
      {.head = HeadKind::sequence, .setup = setup_, .labels = labels_, .tokenizer = tokenizer_}, std::move(store)));
  check(train_.longest() <= model_->max_length(),
        "config: data.max_length {} is above the {} tokens that the model reads", setup_.max_length(),
        model_->max_length());
}

CrossEntropy ClassifyTask::loss(const Batch& batch, Pass& pass) const {
  const auto& given = dynamic_cast<const TextsOfOneBatch&>(batch);
  const Tensor logits = model_->logits(given.texts, given.types, pass);
  return class_loss(logits, given.references, setup_.smoothing, weights_);
}

Verdict ClassifyTask::validate(const ValidateOptions& options) {
  const ClassScores scores = scores_of(*model_, valid_, valid_classes_,
                                       {.tokens_per_batch = setup_.data.tokens_per_batch, .compute = options.compute});
  Verdict out{.metrics = scores.metrics()};
  out.watch(facts().watched.metric);
  return out;
}

void ClassifyTask::begin(const std::string& folder) const {
  write_durably(folder + "/tokenizer.json", tokenizer_.json());
}

void ClassifyTask::save(const std::string& folder) const {
  save_labelled_model(folder, kClassify, *model_, labels_, tokenizer_);
}

}  // namespace mh
