// Windows of text to batches and losses; a text's perplexity; the model's file.
#include "multihead/tasks/language_model.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/safetensors.h"
#include "multihead/metrics/perplexity.h"
#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/settle_tokenizer.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr const char* kKind = "language_model";
constexpr const char* kModelFile = "/model.safetensors";
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
double nats_of(const CausalModel& model, const TextWindows& windows, const TextScoreOptions& options) {
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
    begin += static_cast<int64_t>(texts.size());
    Pass pass = Pass::inference(options.compute);
    sum += model.loss(pack_texts(texts, model.config().begin), pass, 0).nll.item({});
  }
  return sum;
}

// The config that a model's file carries; `kind` stands beside it.
nlohmann::ordered_json config_of_file(const std::map<std::string, std::string>& metadata) {
  const auto text = metadata.find(kConfigKey);
  if (text == metadata.end()) return {};
  return nlohmann::ordered_json::parse(text->second, nullptr, false);
}

bool says_language_model(const nlohmann::ordered_json& config) {
  return config.is_object() && config.value("kind", "") == kKind;
}

void save_language_model(const std::string& path, const CausalModel& model, const Tokenizer& tokenizer) {
  auto config = nlohmann::ordered_json::parse(config_to_json(model.config()));
  config["kind"] = kKind;
  write_safetensors(path, {.tensors = model.params().values(),
                           .metadata = {{kConfigKey, config.dump()},
                                        {"format", "pt"},
                                        {kTokenizerKey, tokenizer_hash(tokenizer)}}});
}

}  // namespace

Metrics TextScores::metrics() const {
  return {{"loss", loss()},
          {"perplexity", perplexity(nats, tokens)},
          {"perplexity_per_word", perplexity(nats, words)},
          {"bits_per_byte", bits_per_byte(nats, bytes)}};
}

bool is_language_model(const std::string& folder) {
  std::error_code ignored;
  const std::string path = folder + kModelFile;
  return std::filesystem::exists(path, ignored) &&
         says_language_model(config_of_file(read_safetensors(path, {.verify = false}).metadata));
}

LanguageModelFolder load_language_model(const std::string& folder) {
  const std::string path = folder + kModelFile, tokenizer_path = folder + "/tokenizer.json";
  Safetensors file = read_safetensors(path);
  nlohmann::ordered_json json = config_of_file(file.metadata);
  if (!says_language_model(json)) fail(ErrorKind::io, "{}: is not a language model", path);
  json["kind"] = "transformer";  // whose keys it has
  const TransformerConfig config = config_from_json(json.dump(), path);
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_path);
  auto metadata = file.metadata;
  metadata[kConfigKey] = json.dump();
  check_tokenizer({tokenizer_path, tokenizer}, path, metadata);
  const auto store = std::make_shared<ParamStore>(std::move(file.tensors));
  CausalModel model(config, store);
  check(store->unused().empty(), "{}: holds '{}', for which the model has no use", path,
        store->unused().empty() ? "" : store->unused().front());
  return {tokenizer, std::move(model)};
}

TextScores score_text(LanguageModelFolder& model, const std::string& path, const TextScoreOptions& options) {
  const PlainText text(path);
  const TransformerConfig& config = model.model.config();
  const TextWindows windows(text, model.tokenizer,
                            {.longest = config.max_length, .packed = options.packed, .end = config.end});
  model.model.pack(options.compute);
  TextScores out = sizes_of_text(text);
  out.tokens = windows.tokens();
  out.nats = nats_of(model.model, windows, options);
  return out;
}

LanguageModelTask::LanguageModelTask(const TaskSetup& setup) : setup_(setup) {
  const DataConfig& data = setup.data;
  PlainText train(data.train), valid;
  if (!data.valid.empty()) valid = PlainText(data.valid);
  if (data.hold_out > 0) valid = train.hold_out(data.hold_out);
  if (setup.events.on_message)
    for (const PlainText* text : {&train, &valid})
      for (const std::string& sentence : text->report()) setup.events.on_message(sentence);
  tokenizer_ = detail::settle_tokenizer(
      setup, [&] { return std::vector<std::string>(train.lines().begin(), train.lines().end()); });
  const TextWindows::Options cut{
      .longest = setup.max_length(), .packed = setup.task.packed, .end = setup.model.end};
  train_ = TextWindows(train, tokenizer_, cut);
  if (data.validates()) valid_ = TextWindows(valid, tokenizer_, cut);
  valid_sizes_ = sizes_of_text(valid);
  valid_sizes_.tokens = valid_.tokens();
  std::vector<ExampleLength> lengths;
  for (int64_t n = 0; n < train_.size(); ++n) lengths.push_back({static_cast<int64_t>(train_[n].size()), 0});
  order_.emplace(std::move(lengths), OrderOptions{.tokens_per_batch = data.tokens_per_batch,
                                                  .window = data.window,
                                                  .seed = setup.seed});
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
  model_.emplace(config, std::move(store));
}

CrossEntropy LanguageModelTask::loss(const Batch& batch, Pass& pass) const {
  return model_->loss(dynamic_cast<const WindowsOfOneBatch&>(batch).text, pass, setup_.smoothing);
}

Verdict LanguageModelTask::validate(const ValidateOptions& options) {
  model_->pack(options.compute);
  TextScores scores = valid_sizes_;
  scores.nats = nats_of(*model_, valid_,
                        {.tokens_per_batch = setup_.data.tokens_per_batch, .compute = options.compute});
  Verdict out{.metrics = scores.metrics()};
  if (!options.answers || !std::isfinite(scores.nats)) return out;
  for (const std::vector<int32_t>& ids : sample_texts(*model_, {.samples = setup_.task.samples,
                                                               .longest = kSampleLength,
                                                               .seed = setup_.seed,
                                                               .compute = options.compute}))
    out.samples.push_back(whole_utf8(tokenizer_.decode(ids)));
  return out;
}

void LanguageModelTask::begin(const std::string& folder) const {
  write_durably(folder + "/tokenizer.json", tokenizer_.json());
}

void LanguageModelTask::save(const std::string& folder) const {
  save_language_model(folder + kModelFile, *model_, tokenizer_);
}

}  // namespace mh
