// Pairs to batches and losses; translations against their references.
#include "multihead/tasks/translation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/generate/search.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/safetensors.h"
#include "multihead/metrics/bleu.h"
#include "multihead/metrics/chrf.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/task_type.h"

namespace mh {

namespace {

constexpr int64_t kTranslated = 500;  // sentences of a validation: enough for a BLEU that tells runs apart

struct PairsOfOneBatch : Batch {
  explicit PairsOfOneBatch(PairBatch given) : pairs(std::move(given)) {}
  int64_t tokens() const override { return pairs.target_tokens(); }
  PairBatch pairs;
};

OrderOptions order_options(const TaskSetup& setup) {
  return {.tokens_per_batch = setup.data.tokens_per_batch, .window = setup.data.window, .seed = setup.seed};
}

// In the order of the data, so that nothing is drawn and nothing sorted.
double negative_log_likelihood(const TranslationModel& model, const Dataset& data,
                               const TranslationScoreOptions& options) {
  const SentenceEnds ends{.begin = model.facts().begin, .end = model.facts().end};
  double sum = 0;
  int64_t tokens = 0;
  for (int64_t begin = 0; begin < data.size();) {
    std::vector<int64_t> pairs;
    int64_t filled = 0;
    for (int64_t pair = begin; pair < data.size(); ++pair) {
      const int64_t length = static_cast<int64_t>(data.target(pair).size()) + 1;
      if (filled > 0 && filled + length > options.tokens_per_batch) break;
      pairs.push_back(pair);
      filled += length;
    }
    begin += static_cast<int64_t>(pairs.size());
    Pass pass = Pass::inference(options.compute);
    const CrossEntropy entropy = model.loss(pack_pairs(data, pairs, ends), pass, 0);
    sum += entropy.nll.to(Device{}).item({});
    tokens += entropy.counted;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, tokens));
}

void check_pairs(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  check(!data.train_target.empty() || data.source_column != data.target_column,
        "config: data.source_column and data.target_column are both {}; expected two columns", data.source_column);
  check(data.valid_target.empty() || !data.valid.empty(), "config: data.valid_target is given without data.valid");
}

StartModel start_of_translator(const std::string& path) {
  const Transformer model = load_transformer(path);
  return {.config = model.config(),
          .weights = model.params().values(),
          .metadata = read_safetensors(path, {.verify = false}).metadata};
}

}  // namespace

TaskType translation_type() {
  return {
      .kind = TaskKind::translation,
      .name = "translation",
      .learns = "sentence pairs, by an encoder and a decoder",
      .examples = "pairs",
      .model = "transformer",
      .use = "translate FOLDER",
      .recurrent = true,
      .check = check_pairs,
      .start = start_of_translator,
      .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> { return std::make_unique<TranslationTask>(setup); }};
}

TranslationScores score_translation(Transformer& model, const Corpus& corpus, const TranslationScoreOptions& options) {
  const std::shared_ptr<Transformer> borrowed(&model, [](Transformer*) {});
  return score_translation(*translation_model(borrowed), corpus, options);
}

TranslationScores score_translation(TranslationModel& model, const Corpus& corpus,
                                    const TranslationScoreOptions& options) {
  const Dataset& data = corpus.valid;
  model.pack(options.compute);
  TranslationScores out;
  out.loss = negative_log_likelihood(model, data, options);
  out.perplexity = std::exp(out.loss);
  const int64_t count = std::min(options.sentences, data.size());
  if (count == 0 || !std::isfinite(out.loss)) return out;  // such a model has no most likely token

  std::vector<std::vector<int32_t>> sources;
  std::vector<std::vector<std::string>> references;
  for (int64_t n = 0; n < count; ++n) {
    sources.emplace_back(data.source(n).begin(), data.source(n).end());
    references.push_back({std::string(corpus.valid_text.target(data.text_pair(n)))});
  }
  std::vector<std::string> hypotheses;
  try {
    for (const auto& found : search(model.generator(), sources, {.beam = 1, .batch = {.compute = options.compute}}))
      hypotheses.push_back(found.empty() ? "" : corpus.tokenizer.decode(found[0].ids));
  } catch (const Error& error) {
    // A run that is about to diverge may have a finite loss and scores that overflow: not scored, and no end of the
    // run.
    if (error.kind() != ErrorKind::invalid_argument) throw;
    return out;
  }
  out.bleu = bleu(hypotheses, references).score;
  out.chrf = chrf(hypotheses, references).score;
  return out;
}

TranslationTask::TranslationTask(const TaskSetup& setup)
    : setup_(setup), corpus_(read_corpus(setup)), order_(lengths_of(corpus_.train), order_options(setup)) {}

TaskFacts TranslationTask::facts() const {
  return {.examples = "pairs",
          .train = corpus_.train.size(),
          .valid = corpus_.valid.size(),
          .tokens = corpus_.train.target_tokens(),
          .source_tokens = corpus_.train.source_tokens(),
          .vocabulary = corpus_.tokenizer.size()};
}

std::string TranslationTask::tokenizer() const { return tokenizer_hash(corpus_.tokenizer); }

std::unique_ptr<Batch> TranslationTask::batch(const Position& at) const {
  return std::make_unique<PairsOfOneBatch>(
      pack_pairs(corpus_.train, order_.examples(at), {.begin = setup_.model.begin, .end = setup_.model.end}));
}

void TranslationTask::make_model(std::shared_ptr<ParamStore> store) {
  TransformerConfig config = setup_.model;
  config.vocabulary = corpus_.tokenizer.size();
  model_ =
      setup_.recurrent.is_recurrent()
          ? translation_model(std::make_shared<RecurrentSeq2Seq>(recurrent_config(config, setup_.recurrent), store))
          : translation_model(std::make_shared<Transformer>(config, store));
}

CrossEntropy TranslationTask::loss(const Batch& batch, Pass& pass) const {
  return model_->loss(dynamic_cast<const PairsOfOneBatch&>(batch).pairs, pass, setup_.smoothing);
}

Verdict TranslationTask::validate(const ValidateOptions& options) {
  const TranslationScores scores = score_translation(*model_, corpus_,
                                                     {.tokens_per_batch = setup_.data.tokens_per_batch,
                                                      .sentences = options.answers ? kTranslated : 0,
                                                      .compute = options.compute});
  return {.metrics = {
              {"loss", scores.loss}, {"perplexity", scores.perplexity}, {"bleu", scores.bleu}, {"chrf", scores.chrf}}};
}

void TranslationTask::begin(const std::string& folder) const {
  write_durably(folder + "/tokenizer.json", corpus_.tokenizer.json());
}

void TranslationTask::save(const std::string& folder) const {
  model_->save(folder + "/model.safetensors", {.tokenizer = corpus_.tokenizer});
}

}  // namespace mh
