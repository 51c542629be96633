// Windows of questions to batches and losses; chosen spans against right ones.
#include "multihead/tasks/answer.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/hash.h"
#include "multihead/models/model_file.h"
#include "multihead/ops/elementwise.h"
#include "multihead/tasks/data/hold_out.h"
#include "multihead/tasks/losses.h"
#include "multihead/tasks/models/labelled_model.h"
#include "multihead/tasks/settle_tokenizer.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/answer_choice.h"
#include "multihead/tasks/verbs/text_encoder.h"

namespace mh {

namespace {

constexpr const char* kAnswer = "answer";

struct SpansOfOneBatch : Batch {
  int64_t tokens() const override { return first.count(); }
  TokenBatch texts{};
  Tensor types{};          // i32 (rows)
  Tensor first{}, last{};  // i32 (windows)
};

std::vector<std::string> texts_of(const SquadFile& file) {
  std::vector<std::string> out = file.contexts;
  for (const SquadQuestion& each : file.questions) out.push_back(each.question);
  return out;
}

// Questions about one context go together.
SquadFile questions_taken_out(SquadFile& from, int64_t count) {
  std::vector<std::string_view> contexts;
  for (const SquadQuestion& each : from.questions) contexts.push_back(from.contexts[each.context]);
  const std::vector<bool> goes = detail::held_out(contexts, count, from.name, "questions");
  SquadFile out{.name = from.name, .contexts = from.contexts};
  std::vector<SquadQuestion> kept;
  for (size_t n = 0; n < goes.size(); ++n) (goes[n] ? out.questions : kept).push_back(std::move(from.questions[n]));
  from.questions = std::move(kept);
  return out;
}

void check_answering(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  check(data.train_target.empty() && data.valid_target.empty(),
        "config: data.{} is given, and questions stand in one file with their contexts; expected none",
        data.train_target.empty() ? "valid_target" : "train_target");
  check(
      !setup.recurrent.family().empty() || !setup.from.empty(),
      "config: model.kind is \"transformer\"; task.kind \"answer\" expects \"bert\", \"distilbert\" or \"modernbert\", "
      "or the folder of an encoder of Hugging Face's in model.from");
  const std::string& metric = setup.task.metric;
  check(metric.empty() || metric == "f1" || metric == "exact" || metric == "loss",
        "config: task.metric is \"{}\"; expected \"f1\", \"exact\" or \"loss\"", metric);
  check(setup.model.encoder_layers >= 1, "config: model.encoder_layers is 0; an answerer expects 1 or more");
}

StartModel start_of_answerer(const std::string& path) {
  fail(ErrorKind::invalid_argument,
       "{}: is a model of multihead's own; an answerer starts from a folder of Hugging Face's", printable_path(path));
}

}  // namespace

TaskType answer_type() {
  return {.kind = TaskKind::answer,
          .name = kAnswer,
          .learns = "where in a text the answer to a question stands, by an encoder",
          .examples = "questions (JSON as SQuAD has it)",
          .model = kAnswer,
          .use = "answer FOLDER < LINES",
          .decoder = false,
          .families = true,
          .check = check_answering,
          .start = start_of_answerer,
          .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> { return std::make_unique<AnswerTask>(setup); }};
}

bool has_impossible(const SquadFile& questions) {
  return std::any_of(questions.questions.begin(), questions.questions.end(),
                     [](const SquadQuestion& each) { return each.answers.empty(); });
}

AnswerScores answer_scores(const SquadFile& questions, const std::vector<Answer>& answers) {
  std::vector<std::string> said;
  for (const Answer& each : answers) said.push_back(each.text);
  std::vector<std::vector<std::string>> right;
  for (const SquadQuestion& each : questions.questions) {
    right.emplace_back();
    for (const SquadAnswer& answer : each.answers) right.back().push_back(answer.text);
  }
  return answer_scores(said, right, has_impossible(questions) ? SquadVersion::v2 : SquadVersion::v1_1);
}

AnswerOptions answer_options(const TaskSetup& setup) {
  return {.max_length = setup.max_length(), .stride = setup.data.stride};
}

AnswerTask::Cut AnswerTask::cut(const SquadFile& questions) const {
  const AnswerOptions options = answer_options(setup_);
  Cut out;
  for (size_t n = 0; n < questions.questions.size(); ++n) {
    const SquadQuestion& one = questions.questions[n];
    const ContextSpan answer =
        one.answers.empty()
            ? ContextSpan{}
            : ContextSpan{one.answers.front().begin, one.answers.front().begin + one.answers.front().text.size()};
    for (Encoded& window : question_windows(tokenizer_, one.question, questions.contexts[one.context],
                                            {options.max_length, options.stride},
                                            fmt::format("{}: question {}", questions.name, printable(one.id)))) {
      out.spans.push_back(answer_rows(window, answer));
      out.texts.windows.push_back(std::move(window));
      out.texts.whose.push_back(n);
    }
  }
  return out;
}

AnswerTask::AnswerTask(const TaskSetup& setup) : setup_(detail::with_tokenizer_of_start(setup)) {
  const DataConfig& data = setup.data;
  SquadFile train = read_squad(data.train, data.max_broken);
  if (!data.valid.empty()) valid_text_ = read_squad(data.valid, data.max_broken);
  if (setup.events.on_message)
    for (const SquadFile* each : {&train, &valid_text_})
      for (const std::string& sentence : each->report) setup.events.on_message(sentence);
  if (data.valid.empty() && data.validates())
    valid_text_ = questions_taken_out(train, data.held_out(static_cast<int64_t>(train.questions.size())));
  tokenizer_ = detail::settle_tokenizer(
      setup_, [&] { return texts_of(train); }, false);
  const Encoded around = tokenizer_.encode_pair("", "");
  check(
      !around.ids.empty() && around.sequences.front() == -1,
      "config: the tokenizer puts no special token before a text, and the first one stands for \"no answer\"; expected "
      "tokenizer.kind \"words\", or the file of an encoder of Hugging Face's");
  train_ = cut(train);
  valid_ = cut(valid_text_);
  train_questions_ = static_cast<int64_t>(train.questions.size());
  std::vector<ExampleLength> lengths;
  for (const Encoded& window : train_.texts.windows) lengths.push_back({1, static_cast<int64_t>(window.ids.size())});
  order_.emplace(std::move(lengths),
                 OrderOptions{.tokens_per_batch = data.examples_per_batch, .window = data.window, .seed = setup.seed});
}

TaskFacts AnswerTask::facts() const {
  const std::string metric = setup_.task.metric.empty() ? "f1" : setup_.task.metric;
  int64_t tokens = 0;
  for (const Encoded& window : train_.texts.windows) tokens += static_cast<int64_t>(window.ids.size());
  return {.examples = fmt::format("windows of {} questions", train_questions_),
          .counted = "windows",
          .watched = {.metric = metric, .higher_is_better = metric != "loss"},
          .train = static_cast<int64_t>(train_.texts.windows.size()),
          .valid = static_cast<int64_t>(valid_.texts.windows.size()),
          .tokens = static_cast<int64_t>(train_.texts.windows.size()),
          .source_tokens = tokens,
          .vocabulary = tokenizer_.size(),
          .model = model_ ? model_->summary() : ""};
}

std::string AnswerTask::digest() const {
  detail::Hash hash;
  for (const Encoded& window : train_.texts.windows) hash.add(std::as_bytes(std::span(window.ids)));
  hash.add(std::as_bytes(std::span(train_.spans)));
  return hash.digits();
}

std::string AnswerTask::tokenizer() const { return tokenizer_hash(tokenizer_); }

std::unique_ptr<Batch> AnswerTask::pack(const Cut& from, std::span<const size_t> which) const {
  auto out = std::make_unique<SpansOfOneBatch>();
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> types, first, last;
  for (const size_t n : which) {
    const Encoded& window = from.texts.windows[n];
    ids.push_back(window.ids);
    types.insert(types.end(), window.types.begin(), window.types.end());
    first.push_back(from.spans[n].first);
    last.push_back(from.spans[n].last);
  }
  const auto windows = static_cast<int64_t>(which.size());
  out->texts = token_batch(ids);
  out->types = tensor<int32_t>(types, {static_cast<int64_t>(types.size())});
  out->first = tensor<int32_t>(first, {windows});
  out->last = tensor<int32_t>(last, {windows});
  return out;
}

std::unique_ptr<Batch> AnswerTask::batch(const Position& at) const {
  const std::vector<int64_t> examples = order_->examples(at);
  return pack(train_, std::vector<size_t>(examples.begin(), examples.end()));
}

void AnswerTask::make_model(std::shared_ptr<ParamStore> store) {
  const Labels none;
  model_.emplace(make_text_model({.head = HeadKind::question, .setup = setup_, .labels = none, .tokenizer = tokenizer_},
                                 std::move(store)));
  check(setup_.max_length() <= model_->max_length(),
        "config: data.max_length is {}, and the model reads at most {} tokens; expected no more", setup_.max_length(),
        model_->max_length());
}

CrossEntropy AnswerTask::loss(const ModelOutputs& outputs, const Batch& batch, float smoothing) const {
  const auto& given = dynamic_cast<const SpansOfOneBatch&>(batch);
  const CrossEntropy first = row_cross_entropy(outputs["start_logits"], given.texts.at, given.first, smoothing);
  const CrossEntropy last = row_cross_entropy(outputs["end_logits"], given.texts.at, given.last, smoothing);
  return {.loss = scale(add(first.loss, last.loss), 0.5F),
          .nll = scale(add(first.nll, last.nll), 0.5F),
          .counted = first.counted};
}

CrossEntropy AnswerTask::loss(const Batch& batch, Pass& pass) const {
  const auto& given = dynamic_cast<const SpansOfOneBatch&>(batch);
  return loss(model_->outputs(given.texts, given.types, pass), batch, setup_.smoothing);
}

Verdict AnswerTask::validate(const ValidateOptions& options) {
  model_->pack(options.compute);
  const std::vector<Encoded>& windows = valid_.texts.windows;
  std::vector<WindowAnswer> best(windows.size());
  double nats = 0;
  in_batches(windows, setup_.data.tokens_per_batch, [&](std::span<const size_t> which) {
    const auto batch = pack(valid_, which);
    const auto& given = dynamic_cast<const SpansOfOneBatch&>(*batch);
    Pass pass = Pass::inference(options.compute);
    const ModelOutputs outputs = model_->outputs(given.texts, given.types, pass);
    nats += loss(outputs, *batch, 0).nll.item({});
    best_spans(outputs, valid_.texts, which, answer_options(setup_).longest_answer, best);
  });
  std::vector<std::string_view> contexts;
  for (const SquadQuestion& each : valid_text_.questions) contexts.push_back(valid_text_.contexts[each.context]);
  const AnswerScores scores =
      answer_scores(valid_text_, best_answers(valid_.texts, best, contexts, has_impossible(valid_text_)));
  Verdict out{.metrics = {{"f1", scores.f1},
                          {"exact", scores.exact_match},
                          {"loss", nats / static_cast<double>(std::max<size_t>(1, windows.size()))}}};
  out.watch(facts().watched.metric);
  return out;
}

void AnswerTask::begin(const std::string& folder) const {
  write_durably(folder + "/tokenizer.json", tokenizer_.json());
}

void AnswerTask::save(const std::string& folder) const {
  save_labelled_model(folder, kAnswer, *model_, Labels(), tokenizer_);
}

}  // namespace mh
