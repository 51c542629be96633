// Windows of text to batches and losses; a text's perplexity; the model's file.
#include "multihead/tasks/language_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/generate/search.h"
#include "multihead/io/durable_file.h"
#include "multihead/metrics/perplexity.h"
#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/settle_tokenizer.h"
#include "multihead/tasks/task_type.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr int64_t kSampleLength = 40;  // tokens: a line that fits a terminal

struct WindowsOfOneBatch : Batch {
  explicit WindowsOfOneBatch(TextBatch given) : text(std::move(given)) {}
  int64_t tokens() const override { return text.labels.count(); }
  TextBatch text;
};

TextScores sizes_of_text(const PlainText& text) {
  return {.words = text.words(), .bytes = text.bytes(), .lines = text.size()};
}

// -Σ log p, in the order of the windows.
double nats_of(const DecoderOnly& model, const TextWindows& windows, const TextScoreOptions& options) {
  double sum = 0;
  for (int64_t begin = 0; begin < windows.size();) {
    std::vector<std::span<const int32_t>> texts;
    int64_t filled = 0;
    for (int64_t n = begin; n < windows.size(); ++n) {
      const auto length = static_cast<int64_t>(windows[n].size());
      if (filled > 0 && filled + length > options.tokens_per_batch) break;
      texts.push_back(windows[n]);
      filled += length;
    }
    Pass pass = Pass::inference(options.compute);
    const TextBatch batch = pack_texts(texts, model.config().begin);
    int32_t* label = batch.labels.data<int32_t>();
    for (const auto& text : texts) {
      std::fill_n(label, windows.known(begin++), -1);
      label += text.size();
    }
    sum += model.loss(batch.input, batch.labels, pass).nll.to(Device{}).item({});
  }
  return sum;
}

// Texts drawn from the beginning with the model's own probabilities.
std::vector<std::vector<int32_t>> drawn_texts(const DecoderOnly& model, int64_t count, uint64_t seed, DType compute) {
  std::vector<std::vector<int32_t>> out;
  for (const auto& samples :
       sample(model, Prompts(static_cast<size_t>(count)),
              {.seed = seed, .rules = {.max_length = kSampleLength}, .batch = {.compute = compute}}))
    out.push_back(samples.front().ids);
  return out;
}

void check_text(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  check(data.train_target.empty() && data.valid_target.empty(),
        "config: data.{} is given, and a language model reads one text; expected none",
        data.train_target.empty() ? "valid_target" : "train_target");
  check(setup.task.packed || data.lines == TextLines::sentences,
        "config: task.packed is false, and data.lines is \"text\", where a line is nothing for itself; expected true");
  check(setup.task.stride <= setup.max_length(), "config: task.stride is {}; expected at most data.max_length, {}",
        setup.task.stride, setup.max_length());
}

int32_t end_of_lines(TextLines lines, const Tokenizer& tokenizer, int32_t end) {
  return lines == TextLines::text ? line_break_of(tokenizer) : end;
}

// The lines, and the break behind each where that is to be a token.
std::vector<std::string> learned_from(const PlainText& text, TextLines lines) {
  std::vector<std::string> out(text.lines().begin(), text.lines().end());
  if (lines == TextLines::text) out.resize(2 * out.size(), "\n");
  return out;
}

StartModel start_of_language_model(const std::string& path) {
  const LanguageModelFolder found = load_language_model(std::filesystem::path(path).parent_path().string());
  return {.config = found.config,
          .weights = found.model.params().values(),
          .metadata = {{kConfigKey, config_to_json(found.config)}, {kTokenizerKey, tokenizer_hash(found.tokenizer)}}};
}

}  // namespace

TaskType language_model_type() {
  return {.kind = TaskKind::language_model,
          .name = "language_model",
          .learns = "the next token of a text, by a decoder alone",
          .examples = "text",
          .model = "language_model",
          .use = "generate FOLDER",
          .encoder = false,
          .check = check_text,
          .start = start_of_language_model,
          .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> {
            return std::make_unique<LanguageModelTask>(setup);
          }};
}

Metrics TextScores::metrics() const {
  return {{"loss", loss()},
          {"perplexity", perplexity(nats, tokens)},
          {"perplexity_per_word", perplexity(nats, words)},
          {"bits_per_byte", bits_per_byte(nats, bytes)},
          {"perplexity_per_word_and_line", perplexity(nats, words + lines)}};
}

TextScores score_text(LanguageModelFolder& model, const std::string& path, const TextScoreOptions& options) {
  const PlainText text(path, options.lines);
  const TransformerConfig& config = model.config;
  const int64_t longest = options.longest == 0 ? config.max_length : options.longest;
  check(longest <= config.max_length, "score_text: windows of {} tokens; expected at most the {} that the model reads",
        longest, config.max_length);
  const TextWindows windows(text, model.tokenizer,
                            {.longest = longest,
                             .packed = options.packed,
                             .end = end_of_lines(options.lines, model.tokenizer, config.end),
                             .stride = options.stride});
  model.model.pack(options.compute);
  TextScores out = sizes_of_text(text);
  out.tokens = windows.tokens();
  out.nats = nats_of(model.model, windows, options);
  return out;
}

LanguageModelTask::LanguageModelTask(const TaskSetup& setup) : setup_(setup) {
  const DataConfig& data = setup.data;
  PlainText train(data.train, data.lines), valid;
  if (!data.valid.empty()) valid = PlainText(data.valid, data.lines);
  const bool by_bytes = data.lines == TextLines::text && data.hold_out == 0;
  if (data.valid.empty() && data.validates())
    valid = train.hold_out(by_bytes ? train.lines_of_share(data.hold_out_share) : data.held_out(train.size()));
  if (setup.events.on_message)
    for (const PlainText* text : {&train, &valid})
      for (const std::string& sentence : text->report()) setup.events.on_message(sentence);
  tokenizer_ = detail::settle_tokenizer(setup, [&] { return learned_from(train, data.lines); });
  TextWindows::Options cut{.longest = setup.max_length(),
                           .packed = setup.task.packed,
                           .end = end_of_lines(data.lines, tokenizer_, setup.model.end)};
  train_ = TextWindows(train, tokenizer_, cut);
  cut.stride = setup.task.stride;
  if (data.validates()) valid_ = TextWindows(valid, tokenizer_, cut);
  valid_sizes_ = sizes_of_text(valid);
  valid_sizes_.tokens = valid_.tokens();
  std::vector<ExampleLength> lengths;
  for (int64_t n = 0; n < train_.size(); ++n) lengths.push_back({static_cast<int64_t>(train_[n].size()), 0});
  order_.emplace(std::move(lengths),
                 OrderOptions{.tokens_per_batch = data.tokens_per_batch, .window = data.window, .seed = setup.seed});
}

TaskFacts LanguageModelTask::facts() const {
  return {.examples = setup_.task.packed ? "windows" : "lines",
          .train = train_.size(),
          .valid = valid_.size(),
          .tokens = train_.tokens(),
          .source_tokens = 0,
          .vocabulary = tokenizer_.size()};
}

std::string LanguageModelTask::tokenizer() const { return tokenizer_hash(tokenizer_); }

std::unique_ptr<Batch> LanguageModelTask::batch(const Position& at) const {
  std::vector<std::span<const int32_t>> texts;
  for (const int64_t window : order_->examples(at)) texts.push_back(train_[window]);
  return std::make_unique<WindowsOfOneBatch>(pack_texts(texts, setup_.model.begin));
}

void LanguageModelTask::make_model(std::shared_ptr<ParamStore> store) {
  TransformerConfig config = setup_.model;
  config.vocabulary = tokenizer_.size();
  model_.emplace(decoder_only_config(config), std::move(store));
}

CrossEntropy LanguageModelTask::loss(const Batch& batch, Pass& pass) const {
  const TextBatch& text = dynamic_cast<const WindowsOfOneBatch&>(batch).text;
  return model_->loss(text.input, text.labels, pass, setup_.smoothing);
}

Verdict LanguageModelTask::validate(const ValidateOptions& options) {
  model_->pack(options.compute);
  TextScores scores = valid_sizes_;
  scores.nats =
      nats_of(*model_, valid_, {.tokens_per_batch = setup_.data.tokens_per_batch, .compute = options.compute});
  Verdict out{.metrics = scores.metrics()};
  if (!options.answers || !std::isfinite(scores.nats)) return out;
  for (const std::vector<int32_t>& ids : drawn_texts(*model_, setup_.task.samples, setup_.seed, options.compute))
    out.samples.push_back(whole_utf8(tokenizer_.decode(ids)));
  return out;
}

void LanguageModelTask::begin(const std::string& folder) const {
  write_durably(folder + "/tokenizer.json", tokenizer_.json());
}

void LanguageModelTask::save(const std::string& folder) const {
  TransformerConfig model = setup_.model;
  model.vocabulary = tokenizer_.size();
  save_language_model(folder, *model_, model, tokenizer_);
}

}  // namespace mh
