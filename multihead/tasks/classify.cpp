// Rows to batches and losses; what a classifier says against what is right.
#include "multihead/tasks/classify.h"

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/metrics/classification.h"
#include "multihead/metrics/regression.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/class_loss.h"
#include "multihead/tasks/settle_tokenizer.h"
#include "multihead/tasks/task_type.h"

namespace mh {

namespace {

constexpr const char* kClassify = "classify";
constexpr int64_t kMostInMatrix = 10'000;  // classes of a confusion matrix

struct MetricNames {
  LabelKind kind;
  const char* key;
  std::vector<std::string> names;  // the first is the task's own
};

const MetricNames& metrics_of(LabelKind kind) {
  static const std::vector<MetricNames> all{
      {LabelKind::one, "one", {"accuracy", "macro_f1", "matthews", "loss"}},
      {LabelKind::several, "several", {"micro_f1", "macro_f1", "exact_match", "loss"}},
      {LabelKind::number, "number", {"pearson", "spearman", "mean_absolute_error", "loss"}}};
  return *std::find_if(all.begin(), all.end(), [&](const MetricNames& each) { return each.kind == kind; });
}

LabelReading reading_of(const TaskSetup& setup) { return {setup.task.labels, setup.data.label_separator}; }

std::unique_ptr<TextsOfOneBatch> pack(const EncodedTexts& texts, const TextTargets& right,
                                      std::span<const int64_t> numbers) {
  std::vector<int32_t> ids, types;
  std::vector<int64_t> lengths;
  auto out = std::make_unique<TextsOfOneBatch>();
  for (const int64_t n : numbers) {
    ids.insert(ids.end(), texts.ids(n).begin(), texts.ids(n).end());
    types.insert(types.end(), texts.types(n).begin(), texts.types(n).end());
    lengths.push_back(static_cast<int64_t>(texts.ids(n).size()));
  }
  out->right = right.of(numbers);
  const auto rows = static_cast<int64_t>(ids.size());
  out->texts = {tensor<int32_t>(ids, {rows}), Sequences::of_lengths(lengths)};
  out->types = tensor<int32_t>(types, {rows});
  return out;
}

ClassScores scores_of(TextModel& model, const EncodedTexts& texts, const TextTargets& right,
                      const ClassScoreOptions& options) {
  model.pack(options.compute);
  ClassScores out{.classes = model.classes(), .labels = right.kind};
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
    const auto batch = pack(texts, right, numbers);
    Pass pass = Pass::inference(options.compute);
    const Tensor logits = model.logits(batch->texts, batch->types, pass);
    out.add(logits, batch->right);
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
  const MetricNames& known = metrics_of(setup.task.labels);
  check(metric.empty() || std::find(known.names.begin(), known.names.end(), metric) != known.names.end(),
        "config: task.metric is \"{}\"; with task.labels \"{}\" expected one of {}", metric, known.key,
        fmt::join(known.names, ", "));
  check(setup.task.labels == LabelKind::one || setup.task.class_weights == ClassWeights::none,
        "config: task.class_weights is \"balanced\", and task.labels \"{}\"; expected \"none\"", known.key);
  check(!data.label_separator.empty(), "config: data.label_separator is empty; expected what parts two labels");
  check(setup.model.encoder_layers >= 1, "config: model.encoder_layers is 0; a classifier expects 1 or more");
}

}  // namespace

TaskType classify_type() {
  return {
      .kind = TaskKind::classify,
      .name = kClassify,
      .learns = "the label of a text or of a pair of texts, its labels or a number, by an encoder",
      .examples = "texts with labels",
      .model = kClassify,
      .use = "classify FOLDER < LINES",
      .decoder = false,
      .families = true,
      .check = check_columns,
      .start = [](const std::string& path) { return start_of_labelled_model(path, kClassify); },
      .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> { return std::make_unique<ClassifyTask>(setup); }};
}

namespace {

Metrics set_metrics(const ClassScores& scores) {
  std::vector<uint8_t> said, right;
  for (const float z : scores.said) said.push_back(z > 0);  // a probability above a half
  for (const float t : scores.right) right.push_back(t > 0);
  const LabelSetScores s = label_set_scores(said, right, scores.classes);
  return {{"micro_f1", s.micro_f1}, {"macro_f1", s.macro_f1}, {"exact_match", s.exact_match}, {"loss", scores.loss}};
}

Metrics number_metrics(const ClassScores& scores) {
  const std::vector<double> said(scores.said.begin(), scores.said.end()),
      right(scores.right.begin(), scores.right.end());
  constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
  const bool correlate = said.size() >= 2;
  return {{"pearson", correlate ? pearson_correlation(said, right) : kUndefined},
          {"spearman", correlate ? spearman_correlation(said, right) : kUndefined},
          {"mean_absolute_error", mean_absolute_error(said, right)},
          {"loss", scores.loss}};
}

}  // namespace

Metrics ClassScores::metrics() const {
  if (labels == LabelKind::several) return set_metrics(*this);
  if (labels == LabelKind::number) return number_metrics(*this);
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

void ClassScores::add(const Tensor& z, const TextTargets& wanted) {
  if (labels == LabelKind::one) return add(z, wanted.classes);
  const auto before = static_cast<double>(size()), more = static_cast<double>(wanted.size());
  loss = (loss * before + target_loss(z, wanted, 0).nll.item({})) / std::max(1.0, before + more);
  said.insert(said.end(), z.data<float>(), z.data<float>() + z.count());
  right.insert(right.end(), wanted.values.begin(), wanted.values.end());
}

int64_t ClassScores::size() const {
  if (labels == LabelKind::one) return static_cast<int64_t>(references.size());
  return static_cast<int64_t>(right.size()) / classes;
}

LabelledModel load_classifier(const std::string& folder) { return load_labelled_model(folder, kClassify); }

ClassScores score_classes(LabelledModel& model, const LabelledTexts& texts, const ClassScoreOptions& options) {
  const TextTargets right = targets_of(texts, model.labels, {model.model.labels(), options.label_separator});
  const EncodedTexts encoded(texts, model.tokenizer, model.max_length);
  return scores_of(model.model, encoded, right, options);
}

ClassifyTask::ClassifyTask(const TaskSetup& setup) : setup_(detail::with_tokenizer_of_start(setup)) {
  const DataConfig& data = setup.data;
  LabelledTexts train = read_labelled(data.train, data), valid;
  if (!data.valid.empty()) valid = read_labelled(data.valid, data);
  if (data.valid.empty() && data.validates()) valid = train.hold_out(data.held_out(train.size()));
  if (setup.events.on_message)
    for (const LabelledTexts* texts : {&train, &valid})
      for (const std::string& sentence : texts->report) setup.events.on_message(sentence);
  labels_ = labels_of(train, reading_of(setup));
  train_right_ = targets_of(train, labels_, reading_of(setup));
  valid_right_ = targets_of(valid, labels_, reading_of(setup));
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
  if (setup.task.class_weights == ClassWeights::balanced)
    weights_ = balanced_weights(train_right_.classes, labels_.size());
  std::vector<ExampleLength> lengths;
  for (int64_t n = 0; n < train_.size(); ++n) lengths.push_back({1, static_cast<int64_t>(train_.ids(n).size())});
  // A window as large as a batch: without padding there is nothing to gain from texts of one length.
  order_.emplace(
      std::move(lengths),
      OrderOptions{.tokens_per_batch = data.examples_per_batch, .window = data.examples_per_batch, .seed = setup.seed});
}

TaskFacts ClassifyTask::facts() const {
  const LabelKind kind = setup_.task.labels;
  const std::string metric = setup_.task.metric.empty() ? metrics_of(kind).names.front() : setup_.task.metric;
  return {.examples =
              kind == LabelKind::number ? "texts with numbers" : fmt::format("texts with {} labels", labels_.size()),
          .counted = "texts",
          .watched = {.metric = metric, .higher_is_better = metric != "loss" && metric != "mean_absolute_error"},
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
  return pack(train_, train_right_, order_->examples(at));
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
  if (given.right.kind != LabelKind::one) return target_loss(logits, given.right, setup_.smoothing);
  return class_loss(logits, given.right.classes, setup_.smoothing, weights_);
}

Verdict ClassifyTask::validate(const ValidateOptions& options) {
  const ClassScores scores = scores_of(*model_, valid_, valid_right_,
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
