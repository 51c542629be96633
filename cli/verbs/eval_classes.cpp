// Metrics of a classifier, a tagger, an answerer or a recommender on a file, and the confusion matrix.
#include "cli/verbs/eval_classes.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/exit_code.h"
#include "cli/say.h"
#include "multihead/tasks/answer.h"
#include "multihead/tasks/classify.h"
#include "multihead/tasks/pixels/pixel_model.h"
#include "multihead/tasks/pixels/pixel_task.h"
#include "multihead/tasks/recommend.h"
#include "multihead/tasks/tag.h"

namespace mh::cli {

namespace {

TrainConfig config_of(const EvalClasses& choice) { return config_beside(choice.model, choice.overrides); }

DataConfig data_of(const EvalClasses& choice) { return config_of(choice).data; }

int print_metrics(const std::string& what, size_t count, const Metrics& metrics, bool json) {
  if (json) {
    nlohmann::ordered_json out{{what, count}};
    for (const auto& [name, value] : metrics) out[name] = value;
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  for (const auto& [name, value] : metrics) fmt::print("{} {:.4f}\n", name, value);
  return kDone;
}

void print_matrix(const ConfusionMatrix& matrix, const Labels& labels) {
  std::string out = "right \\ said";
  for (const std::string& name : labels.names()) out += '\t' + name;
  for (int64_t right = 0; right < matrix.classes; ++right) {
    out += '\n' + labels.name(right);
    for (int64_t said = 0; said < matrix.classes; ++said) out += fmt::format("\t{}", matrix.at(right, said));
  }
  fmt::print("{}\n", out);
}

// `counted`: what the examples are called in JSON.
int print_scores(const EvalClasses& choice, const ClassScores& scores, const Labels& labels, const char* counted) {
  if (choice.json) {
    nlohmann::ordered_json out{{counted, scores.size()}};
    for (const auto& [name, value] : scores.metrics()) out[name] = value;
    if (choice.confusion) {
      const ConfusionMatrix matrix = confusion_matrix(scores.predictions, scores.references, scores.classes);
      out["labels"] = labels.names();
      for (int64_t right = 0; right < matrix.classes; ++right)
        out["confusion"].push_back(std::vector<int64_t>(matrix.counts.begin() + right * matrix.classes,
                                                        matrix.counts.begin() + (right + 1) * matrix.classes));
    }
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  for (const auto& [name, value] : scores.metrics()) fmt::print("{} {:.4f}\n", name, value);
  if (choice.confusion) print_matrix(confusion_matrix(scores.predictions, scores.references, scores.classes), labels);
  return kDone;
}

}  // namespace

TrainConfig config_beside(const std::string& folder, const std::vector<std::string>& overrides) {
  const std::string path = folder + "/config.toml";
  TrainConfig config;
  if (std::filesystem::exists(path)) config = load_config(path);
  override_config(config, overrides);
  return config;
}

int eval_classes(const EvalClasses& choice) {
  LabelledModel model = load_classifier(choice.model);
  if (choice.confusion && model.model.labels() != LabelKind::one)
    throw CLI::ValidationError("--confusion", "is for one label of a text; this model gives several, or a number");
  const DataConfig data = data_of(choice);
  const LabelledTexts texts = read_labelled(choice.file, data);
  for (const std::string& sentence : texts.report) mention("multihead eval: {}", sentence);
  const ClassScores scores =
      score_classes(model, texts, {.compute = choice.compute, .label_separator = data.label_separator});
  return print_scores(choice, scores, model.labels, "texts");
}

int eval_pixels(const EvalClasses& choice) {
  const PixelModel model = PixelModel::load(choice.model, choice.compute);
  const DataConfig data = data_of(choice);
  const bool is_folder = std::filesystem::is_directory(choice.file);
  const PixelExamples examples =
      read_pixel_examples(choice.file, is_folder ? "" : data.valid_target, data, model.form());
  for (const std::string& sentence : examples.report) mention("multihead eval: {}", sentence);
  return print_scores(choice, model.score(examples), model.labels(), "examples");
}

int eval_tags(const EvalClasses& choice) {
  LabelledModel model = load_tagger_model(choice.model);
  const TaggedSentences sentences = read_conll(choice.file, conll_options(data_of(choice)));
  for (const std::string& sentence : sentences.report) mention("multihead eval: {}", sentence);
  const Metrics metrics = score_tags(model, sentences, {.compute = choice.compute}).metrics();
  return print_metrics("sentences", sentences.sentences.size(), metrics, choice.json);
}

int eval_answers(const EvalClasses& choice) {
  const Answerer answerer = Answerer::load(choice.model, choice.compute);
  const TrainConfig config = config_of(choice);
  const SquadFile questions = read_squad(choice.file, config.data.max_broken);
  for (const std::string& sentence : questions.report) mention("multihead eval: {}", sentence);
  std::vector<Question> asked;
  for (const SquadQuestion& each : questions.questions)
    asked.push_back({each.question, questions.contexts[each.context]});
  // A folder that was not trained here has no configuration, and what its windows hold is Answerer's to say.
  AnswerOptions options;
  if (std::filesystem::exists(choice.model + "/config.toml"))
    options = answer_options({.model = config.model, .data = config.data});
  options.no_answer = has_impossible(questions);
  const AnswerScores scores = answer_scores(questions, answerer(asked, options));
  return print_metrics("questions", asked.size(), {{"exact", scores.exact_match}, {"f1", scores.f1}}, choice.json);
}

int eval_histories(const EvalClasses& choice) {
  LanguageModelFolder model = load_language_model(choice.model, kRecommend);
  const Histories read = read_histories(choice.file, data_of(choice), {.vocabulary = &model.tokenizer});
  for (const std::string& sentence : read.report) mention("multihead eval: {}", sentence);
  const Metrics metrics = score_histories(model, item_ids(read, model.tokenizer), choice.compute);
  return print_metrics("users", read.users.size(), metrics, choice.json);
}

}  // namespace mh::cli
