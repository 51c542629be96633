// Sentences to batches and losses; predicted tags against right ones.
#include "multihead/tasks/tag.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/hash.h"
#include "multihead/metrics/entities.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/data/hold_out.h"
#include "multihead/tasks/settle_tokenizer.h"
#include "multihead/tasks/task_type.h"

namespace mh {

namespace {

constexpr const char* kTag = "tag";
constexpr int32_t kNotAWord = -1;  // cross_entropy passes such rows over

struct WordsOfOneBatch : Batch {
  int64_t tokens() const override { return words; }
  TokenBatch texts{};
  Tensor tags{};  // i32 (rows)
  int64_t words = 0;
};

int64_t column_of(const std::string& column, const char* key) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(column.data(), column.data() + column.size(), number);
  check(error == std::errc() && end == column.data() + column.size() && (number >= 1 || number == -1),
        "config: data.{} is \"{}\"; columns of CoNLL have numbers: expected one from 1, or -1 for the last", key,
        column);
  return number;
}

Labels tags_of(const TaggedSentences& sentences) {
  std::vector<std::string> names;
  for (const TaggedSentence& sentence : sentences.sentences)
    names.insert(names.end(), sentence.tags.begin(), sentence.tags.end());
  Labels out(std::move(names));
  check(out.size() >= 2, "{}: every word has the tag '{}'; expected two tags or more", sentences.name, out.name(0));
  return out;
}

std::vector<std::vector<int32_t>> numbers_of(const TaggedSentences& sentences, const Labels& labels) {
  std::vector<std::vector<int32_t>> out;
  for (const TaggedSentence& sentence : sentences.sentences) {
    out.emplace_back();
    for (size_t n = 0; n < sentence.tags.size(); ++n)
      out.back().push_back(labels.require(
          sentence.tags[n], fmt::format("{}:{}", sentences.name, sentence.line + static_cast<int64_t>(n))));
  }
  return out;
}

TaggedSentences take_out(TaggedSentences& from, int64_t count) {
  std::vector<std::string> joined;
  for (const TaggedSentence& sentence : from.sentences)
    joined.push_back(fmt::format("{}", fmt::join(sentence.words, " ")));
  const std::vector<bool> goes = detail::held_out({joined.begin(), joined.end()}, count, from.name, "sentences");
  TaggedSentences out{.name = from.name};
  std::vector<TaggedSentence> kept;
  for (size_t n = 0; n < goes.size(); ++n) (goes[n] ? out.sentences : kept).push_back(std::move(from.sentences[n]));
  from.sentences = std::move(kept);
  return out;
}

std::unique_ptr<WordsOfOneBatch> pack_words(const std::vector<WordTokens>& sentences,
                                            const std::vector<std::vector<int32_t>>& tags,
                                            std::span<const int64_t> numbers) {
  auto out = std::make_unique<WordsOfOneBatch>();
  std::vector<int32_t> ids, right;
  std::vector<int64_t> lengths;
  for (const int64_t n : numbers) {
    const WordTokens& sentence = sentences[static_cast<size_t>(n)];
    const size_t begin = ids.size();
    ids.insert(ids.end(), sentence.ids.begin(), sentence.ids.end());
    right.resize(ids.size(), kNotAWord);
    lengths.push_back(static_cast<int64_t>(sentence.ids.size()));
    for (size_t word = 0; word < sentence.first.size(); ++word)
      right[begin + static_cast<size_t>(sentence.first[word])] = tags[static_cast<size_t>(n)][word];
    out->words += static_cast<int64_t>(sentence.first.size());
  }
  const auto rows = static_cast<int64_t>(ids.size());
  out->texts = {tensor<int32_t>(ids, {rows}), Sequences::of_lengths(lengths)};
  out->tags = tensor<int32_t>(right, {rows});
  return out;
}

TagScores scores_of(TextModel& model, const Labels& labels, const std::vector<WordTokens>& sentences,
                    const std::vector<std::vector<int32_t>>& tags, const TagScoreOptions& options) {
  model.pack(options.compute);
  TagScores out;
  int64_t words = 0;
  for (size_t begin = 0; begin < sentences.size();) {
    std::vector<int64_t> numbers;
    int64_t filled = 0;
    for (size_t n = begin; n < sentences.size(); ++n) {
      const auto length = static_cast<int64_t>(sentences[n].ids.size());
      if (filled > 0 && filled + length > options.tokens_per_batch) break;
      numbers.push_back(static_cast<int64_t>(n));
      filled += length;
    }
    const auto batch = pack_words(sentences, tags, numbers);
    Pass pass = Pass::inference(options.compute);
    const Tensor logits = model.logits(batch->texts, {}, pass);
    out.loss += cross_entropy(logits, batch->tags).nll.item({});
    words += batch->words;
    int64_t row = 0;
    for (const int64_t n : numbers) {
      const WordTokens& sentence = sentences[static_cast<size_t>(n)];
      const std::vector<int32_t>& right = tags[static_cast<size_t>(n)];
      out.predictions.emplace_back(right.size(), "O");
      out.references.emplace_back();
      for (const int32_t tag : right) out.references.back().push_back(labels.name(tag));
      for (size_t word = 0; word < sentence.first.size(); ++word) {
        const float* z = logits.data<float>() + (row + sentence.first[word]) * labels.size();
        out.predictions.back()[word] = labels.name(std::max_element(z, z + labels.size()) - z);
      }
      row += static_cast<int64_t>(sentence.ids.size());
    }
    begin += numbers.size();
  }
  out.loss /= static_cast<double>(std::max<int64_t>(1, words));
  return out;
}

void check_tagging(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  check(data.train_target.empty() && data.valid_target.empty(),
        "config: data.{} is given, and words with tags stand in one file; expected none",
        data.train_target.empty() ? "valid_target" : "train_target");
  const ConllOptions columns = conll_options(data);
  check(columns.word_column != columns.tag_column, "config: data.text and data.label are both column {}; expected two",
        columns.word_column);
  const std::string& metric = setup.task.metric;
  check(metric.empty() || metric == "f1" || metric == "accuracy" || metric == "loss",
        "config: task.metric is \"{}\"; expected \"f1\", \"accuracy\" or \"loss\"", metric);
  check(setup.model.encoder_layers >= 1, "config: model.encoder_layers is 0; a tagger expects 1 or more");
}

}  // namespace

ConllOptions conll_options(const DataConfig& data) {
  return {.word_column = column_of(data.text, "text"),
          .tag_column = column_of(data.label, "label"),
          .max_broken = data.max_broken};
}

TaskType tag_type() {
  return {.kind = TaskKind::tag,
          .name = kTag,
          .learns = "the tag of every word of a sentence, by an encoder",
          .examples = "sentences with tags",
          .model = kTag,
          .use = "tag FOLDER < LINES",
          .decoder = false,
          .families = true,
          .check = check_tagging,
          .start = [](const std::string& path) { return start_of_labelled_model(path, kTag); },
          .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> { return std::make_unique<TagTask>(setup); }};
}

LabelledModel load_tagger_model(const std::string& folder) { return load_labelled_model(folder, kTag); }

Metrics TagScores::metrics() const {
  const EntityScores scores = entity_scores(predictions, references);
  int64_t right = 0, words = 0;
  for (size_t n = 0; n < references.size(); ++n)
    for (size_t word = 0; word < references[n].size(); ++word, ++words)
      right += predictions[n][word] == references[n][word];
  return {{"f1", scores.f1},
          {"precision", scores.precision},
          {"recall", scores.recall},
          {"accuracy", static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, words))},
          {"loss", loss}};
}

TagScores score_tags(LabelledModel& model, const TaggedSentences& sentences, const TagScoreOptions& options) {
  std::vector<WordTokens> tokens;
  for (const TaggedSentence& sentence : sentences.sentences)
    tokens.push_back((model.model.own() != nullptr ? encode_words : encode_sentence)(model.tokenizer, sentence.words,
                                                                                     model.max_length));
  return scores_of(model.model, model.labels, tokens, numbers_of(sentences, model.labels), options);
}

TagTask::Encoded TagTask::encoded(const TaggedSentences& sentences) const {
  Encoded out{.tags = numbers_of(sentences, labels_)};
  const auto encode = is_of_family(setup_) ? encode_sentence : encode_words;
  int64_t cut = 0;
  for (const TaggedSentence& sentence : sentences.sentences) {
    out.sentences.push_back(encode(tokenizer_, sentence.words, setup_.max_length()));
    cut += out.sentences.back().first.size() < sentence.words.size() ? 1 : 0;
  }
  if (cut > 0 && setup_.events.on_message)
    setup_.events.on_message(
        fmt::format("{}: {} of {} sentences have more than {} tokens; only their beginning is read", sentences.name,
                    cut, sentences.sentences.size(), setup_.max_length()));
  return out;
}

TagTask::TagTask(const TaskSetup& setup) : setup_(detail::with_tokenizer_of_start(setup)) {
  const DataConfig& data = setup.data;
  TaggedSentences train = read_conll(data.train, conll_options(data));
  if (!data.valid.empty()) valid_text_ = read_conll(data.valid, conll_options(data));
  if (data.valid.empty() && data.validates())
    valid_text_ = take_out(train, data.held_out(static_cast<int64_t>(train.sentences.size())));
  if (setup.events.on_message)
    for (const TaggedSentences* each : {&train, &valid_text_})
      for (const std::string& sentence : each->report) setup.events.on_message(sentence);
  labels_ = tags_of(train);
  tokenizer_ = detail::settle_tokenizer(
      setup_,
      [&] {
        std::vector<std::string> lines;
        for (const TaggedSentence& sentence : train.sentences)
          lines.push_back(fmt::format("{}", fmt::join(sentence.words, " ")));
        return lines;
      },
      false);
  train_ = encoded(train);
  valid_ = encoded(valid_text_);
  std::vector<ExampleLength> lengths;
  for (const WordTokens& sentence : train_.sentences) lengths.push_back({1, static_cast<int64_t>(sentence.ids.size())});
  order_.emplace(
      std::move(lengths),
      OrderOptions{.tokens_per_batch = data.examples_per_batch, .window = data.examples_per_batch, .seed = setup.seed});
}

TaskFacts TagTask::facts() const {
  const std::string metric = setup_.task.metric.empty() ? "f1" : setup_.task.metric;
  int64_t words = 0, tokens = 0;
  for (const WordTokens& sentence : train_.sentences) {
    words += static_cast<int64_t>(sentence.first.size());
    tokens += static_cast<int64_t>(sentence.ids.size());
  }
  return {.examples = fmt::format("sentences with {} tags", labels_.size()),
          .counted = "words",
          .watched = {.metric = metric, .higher_is_better = metric != "loss"},
          .train = static_cast<int64_t>(train_.sentences.size()),
          .valid = static_cast<int64_t>(valid_.sentences.size()),
          .tokens = words,
          .source_tokens = tokens,
          .vocabulary = tokenizer_.size(),
          .model = model_ ? model_->summary() : ""};
}

std::string TagTask::digest() const {
  detail::Hash hash;
  for (size_t n = 0; n < train_.sentences.size(); ++n) {
    hash.add(std::as_bytes(std::span(train_.sentences[n].ids)));
    hash.add(std::as_bytes(std::span(train_.tags[n])));
  }
  return hash.digits();
}

std::string TagTask::tokenizer() const { return tokenizer_hash(tokenizer_); }

std::unique_ptr<Batch> TagTask::batch(const Position& at) const {
  return pack_words(train_.sentences, train_.tags, order_->examples(at));
}

void TagTask::make_model(std::shared_ptr<ParamStore> store) {
  model_.emplace(make_text_model({.head = HeadKind::token, .setup = setup_, .labels = labels_, .tokenizer = tokenizer_},
                                 std::move(store)));
}

CrossEntropy TagTask::loss(const Batch& batch, Pass& pass) const {
  const auto& given = dynamic_cast<const WordsOfOneBatch&>(batch);
  return cross_entropy(model_->logits(given.texts, {}, pass), given.tags, {.smoothing = setup_.smoothing});
}

Verdict TagTask::validate(const ValidateOptions& options) {
  const TagScores scores = scores_of(*model_, labels_, valid_.sentences, valid_.tags,
                                     {.tokens_per_batch = setup_.data.tokens_per_batch, .compute = options.compute});
  Verdict out{.metrics = scores.metrics()};
  out.watch(facts().watched.metric);
  return out;
}

void TagTask::begin(const std::string& folder) const { write_durably(folder + "/tokenizer.json", tokenizer_.json()); }

void TagTask::save(const std::string& folder) const { save_labelled_model(folder, kTag, *model_, labels_, tokenizer_); }

}  // namespace mh
