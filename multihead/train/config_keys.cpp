// The one table of keys: reading, writing and the page of documentation all walk it.
#include "multihead/train/config_keys.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace mh::detail {

namespace {

constexpr int64_t kMany = std::numeric_limits<int64_t>::max(), kMillion = 1000000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Integers {
  int64_t low = 0, high = kMany;

  std::string text() const {
    return high == kMany ? fmt::format("an integer, at least {}", low)
                         : fmt::format("an integer from {} to {}", low, high);
  }
};

struct Numbers {
  double low = 0, high = 1;
  bool low_excluded = false, high_excluded = false;

  bool holds(double x) const {  // neither NaN nor infinity
    return (low_excluded ? x > low : x >= low) && (high_excluded ? x < high : x <= high);
  }
  std::string text() const {
    return fmt::format("a number, {} {}{}", low_excluded ? "above" : "at least", low,
                       high == kInfinity ? "" : fmt::format(" and {} {}", high_excluded ? "below" : "at most", high));
  }
};

constexpr Numbers kProbability{.high_excluded = true};

template <class T>
using Names = std::vector<std::pair<std::string, T>>;

// The double whose shortest text is that of the float: 0.1F is written as 0.1.
double shortest(float x) { return std::stod(fmt::format("{}", x)); }
double shortest(double x) { return x; }

std::optional<double> number_of(const ConfigValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

// Adds the keys of one section, each a field of `Part`.
template <class Part>
class Section {
 public:
  Section(std::vector<ConfigKey>& keys, std::string name, Part TrainConfig::*part)
      : keys_(keys), name_(std::move(name)), part_(part) {}

  void integer(const char* name, int64_t Part::*field, const Integers& range, const char* doc) {
    add(name, range.text(), doc, field, [range](int64_t& place, const ConfigValue& value) {
      const auto* given = std::get_if<int64_t>(&value);
      if (given == nullptr || *given < range.low || *given > range.high) return false;
      place = *given;
      return true;
    });
  }

  template <class T>
  void number(const char* name, T Part::*field, const Numbers& range, const char* doc) {
    add(name, range.text(), doc, field, [range](T& place, const ConfigValue& value) {
      const std::optional<double> given = number_of(value);
      if (!given || !range.holds(static_cast<T>(*given))) return false;
      place = static_cast<T>(*given);
      return true;
    });
  }

  void flag(const char* name, bool Part::*field, const char* doc) {
    add(name, "true or false", doc, field, [](bool& place, const ConfigValue& value) {
      if (!std::holds_alternative<bool>(value)) return false;
      place = std::get<bool>(value);
      return true;
    });
  }

  void text(const char* name, std::string Part::*field, const char* doc) {
    add(name, "text", doc, field, [](std::string& place, const ConfigValue& value) {
      if (!std::holds_alternative<std::string>(value)) return false;
      place = std::get<std::string>(value);
      return true;
    });
  }

  template <class T>
  void choice(const char* name, T Part::*field, const Names<T>& names, const char* doc) {
    std::vector<std::string> words;
    for (const auto& [word, meaning] : names) words.push_back(value_text(word));
    const auto part = part_;
    keys_.push_back({.section = name_,
                     .name = name,
                     .expected = fmt::format("one of {}", fmt::join(words, ", ")),
                     .doc = doc,
                     .take =
                         [part, field, names](TrainConfig& config, const ConfigValue& value) {
                           for (const auto& [word, meaning] : names) {
                             if (value != ConfigValue(word)) continue;
                             config.*part.*field = meaning;
                             return true;
                           }
                           return false;
                         },
                     .value = [part, field, names](const TrainConfig& config) -> ConfigValue {
                       const auto known = std::find_if(names.begin(), names.end(), [&](const auto& each) {
                         return each.second == config.*part.*field;
                       });
                       return known == names.end() ? std::string() : known->first;
                     }});
  }

 private:
  template <class T, class Take>
  void add(const char* name, std::string expected, const char* doc, T Part::*field, Take take) {
    const auto part = part_;
    keys_.push_back({.section = name_,
                     .name = name,
                     .expected = std::move(expected),
                     .doc = doc,
                     .take = [part, field, take](TrainConfig& config,
                                                 const ConfigValue& value) { return take(config.*part.*field, value); },
                     .value = [part, field](const TrainConfig& config) -> ConfigValue {
                       const T& held = config.*part.*field;
                       if constexpr (std::is_floating_point_v<T>)
                         return shortest(held);
                       else
                         return held;
                     }});
  }

  std::vector<ConfigKey>& keys_;
  std::string name_;
  Part TrainConfig::*part_;
};

void add_task(std::vector<ConfigKey>& keys) {
  using T = TaskConfig;
  Section<T> task(keys, "task", &TrainConfig::task);
  task.choice<TaskKind>(
      "kind", &T::kind, {{"translation", TaskKind::translation}, {"language_model", TaskKind::language_model}},
      "What is learned: sentence pairs, by an encoder and a decoder; or the next token of a text, by a decoder alone.");
  task.flag("packed", &T::packed,
            "Of a language model: whether windows of data.max_length tokens run across lines; else every line is "
            "learned for itself.");
  task.integer("samples", &T::samples, {0, 100}, "Texts that a language model writes at each validation.");
}

void add_model(std::vector<ConfigKey>& keys) {
  using M = TransformerConfig;
  using R = RecurrentChoice;
  Section<R> recurrent(keys, "model", &TrainConfig::recurrent);
  recurrent.choice<ModelKind>("kind", &R::kind,
                              {{"transformer", ModelKind::transformer},
                               {"lstm", ModelKind::lstm},
                               {"gru", ModelKind::gru},
                               {"rnn", ModelKind::rnn}},
                              "The architecture: the Transformer, for which task.kind says with which stacks; or a recurrent "
                              "encoder and decoder, which read width, hidden, attention, layers, dropout, tied and max_length.");
  recurrent.choice<PairAttention>("attention", &R::attention,
                                  {{"none", PairAttention::none},
                                   {"additive", PairAttention::additive},
                                   {"multiplicative", PairAttention::multiplicative}},
                                  "How a recurrent decoder looks at the source: not at all; Bahdanau's way; Luong's.");
  recurrent.integer("hidden", &R::hidden, {1, 65536},
                    "Width of a recurrent decoder's state; with attention even and at most 512, half of it in each direction of "
                    "the encoder.");
  Section<StartConfig>(keys, "model", &TrainConfig::start)
      .text("from", &StartConfig::from,
            "The folder of a model, or its file, whose weights training starts from; empty: fresh weights.");
  Section<M> model(keys, "model", &TrainConfig::model);
  model.integer("vocabulary", &M::vocabulary, {0, 10 * kMillion},
                "Tokens the model knows; 0: as many as the tokenizer has.");
  model.integer("width", &M::width, {1, 65536}, "Width of the model, d_model in the paper; a multiple of heads.");
  model.integer("heads", &M::heads, {1, 4096}, "Heads of every attention.");
  model.integer("feed_forward", &M::feed_forward, {1, kMillion}, "Width of the feed-forward's middle.");
  model.integer("encoder_layers", &M::encoder_layers, {0, 1024}, "Layers that read the source; a language model has none, whatever stands here.");
  model.integer("decoder_layers", &M::decoder_layers, {1, 1024}, "Layers that write the target, or all layers of a language model.");
  model.choice<NormPlace>("norm", &M::norm, {{"pre", NormPlace::before}, {"post", NormPlace::after}},
                          "Where layers normalise: before each sublayer, or after it as in the paper.");
  model.choice<Middle>("activation", &M::middle,
                       {{"relu", Middle::relu},
                        {"gelu", Middle::gelu},
                        {"gelu_tanh", Middle::gelu_tanh},
                        {"swiglu", Middle::swiglu},
                        {"geglu", Middle::geglu}},
                       "The middle of the feed-forward; the last two are gated and have a matrix more.");
  model.choice<ModelPositions>("positions", &M::positions,
                               {{"sinusoidal", ModelPositions::sinusoidal},
                                {"learned", ModelPositions::learned},
                                {"rotary", ModelPositions::rotary},
                                {"alibi", ModelPositions::alibi},
                                {"t5", ModelPositions::t5}},
                               "How the model tells positions apart.");
  model.number("dropout", &M::dropout, kProbability, "Share of activations dropped in training.");
  model.flag("tied", &M::tied, "Whether source, target and output share one matrix; else each has its own.");
  model.integer("max_length", &M::max_length, {2, kMillion}, "Longest sentence in tokens, its end included.");
}

void add_tokenizer(std::vector<ConfigKey>& keys) {
  using T = TokenizerConfig;
  Section<T> tokenizer(keys, "tokenizer", &TrainConfig::tokenizer);
  tokenizer.text("path", &T::path,
                 "An existing tokenizer.json; empty: one is learned from the training data, by the keys below.");
  tokenizer.integer("vocabulary", &T::vocabulary, {260, 10 * kMillion},
                    "Tokens to learn, the 4 special ones and the 256 bytes included.");
  tokenizer.flag("lowercase", &T::lowercase, "Whether text is lower-cased.");
  tokenizer.choice<Normalisation>(
      "normalise", &T::normalise,
      {{"none", Normalisation::none}, {"nfc", Normalisation::nfc}, {"nfkc", Normalisation::nfkc}},
      "Unicode normalisation of text; none keeps every byte.");
}

void add_data(std::vector<ConfigKey>& keys) {
  using D = DataConfig;
  Section<D> data(keys, "data", &TrainConfig::data);
  data.text("train", &D::train, "The training data: a TSV file, or the source sentences where train_target is given; of a language model, a text.");
  data.text("train_target", &D::train_target,
            "The target sentences, line by line those of train; empty: train is TSV.");
  data.text("valid", &D::valid, "The validation data, as train; empty: no validation.");
  data.text("valid_target", &D::valid_target, "The target sentences of valid, as train_target.");
  data.integer("hold_out", &D::hold_out, {0, 10 * kMillion},
               "Pairs of train kept for validation where valid is empty, all of a source together; of a text, its last lines; 0: "
               "none.");
  data.integer("source_column", &D::source_column, {1, 1000}, "Column of the source sentence in a TSV file.");
  data.integer("target_column", &D::target_column, {1, 1000}, "Column of the target sentence in a TSV file.");
  data.integer("tokens_per_batch", &D::tokens_per_batch, {1, 10 * kMillion},
               "Most tokens in a batch whose loss counts (of pairs, the target's), ends included; a longer example is a batch of "
               "its own.");
  data.integer("window", &D::window, {1},
               "Examples that are sorted by length together, so that those of a batch are of like length.");
  data.integer("max_length", &D::max_length, {0, kMillion},
               "Pairs with more tokens on a side, its end included, are skipped; a text is cut there; 0: model.max_length.");
}

void add_optimizer(std::vector<ConfigKey>& keys) {
  using O = OptimizerConfig;
  Section<O> optimizer(keys, "optimizer", &TrainConfig::optimizer);
  optimizer.number("learning_rate", &O::learning_rate, {.high = 1000, .low_excluded = true},
                   "AdamW's step size at its highest, at the end of the warm-up.");
  optimizer.number("beta1", &O::beta1, kProbability, "Decay of the mean of gradients.");
  optimizer.number("beta2", &O::beta2, kProbability, "Decay of the mean of squared gradients.");
  optimizer.number("epsilon", &O::epsilon, {.low_excluded = true}, "Added to the root of the squares' mean.");
  optimizer.number("weight_decay", &O::weight_decay, {.high = 10},
                   "Share of every weight taken away each step, times the learning rate.");
  optimizer.number("clip", &O::clip, {.high = kInfinity, .high_excluded = true},
                   "Gradients with a larger norm are scaled down to it; 0: never.");
  optimizer.choice<ScheduleKind>(
      "schedule", &O::schedule,
      {{"cosine", ScheduleKind::cosine},
       {"linear", ScheduleKind::linear},
       {"paper", ScheduleKind::paper},
       {"constant", ScheduleKind::constant}},
      "How the learning rate goes on after the warm-up: to 0 along a cosine or a line, falling as "
      "1/sqrt(step), or as it is.");
  optimizer.integer("warmup", &O::warmup, {0, kMillion * 1000}, "Steps over which the learning rate rises from 0.");
}

void add_train(std::vector<ConfigKey>& keys) {
  using R = RunConfig;
  Section<R> train(keys, "train", &TrainConfig::train);
  train.text("output", &R::output, "The folder that gets the model, its checkpoints and the log.");
  train.integer("epochs", &R::epochs, {1, 100000}, "Times all training data are seen; not used where steps is given.");
  train.integer("steps", &R::steps, {0, kMillion * 1000}, "Steps of the optimiser; 0: as many as epochs make.");
  train.integer("seed", &R::seed, {}, "Fresh weights, the order of the data and dropout follow from it.");
  train.choice<DType>("precision", &R::precision, {{"f32", DType::f32}, {"bf16", DType::bf16}},
                      "The type of what matrix products read; weights are kept in f32 either way.");
  train.number("label_smoothing", &R::label_smoothing, kProbability,
               "Share of the target's probability spread over all tokens.");
  train.integer("accumulate", &R::accumulate, {1, kMillion}, "Batches whose gradients make one step.");
  train.number("ema", &R::ema, kProbability,
               "Decay of a running mean of the weights; it is shipped where it validates better than the weights, or "
               "where there is no validation; 0: none is kept.");
  train.integer("validate_every", &R::validate_every, {0, kMillion * 1000},
                "Steps between validations; 0: after every epoch.");
  train.integer("save_every", &R::save_every, {1, kMillion * 1000}, "Steps between checkpoints.");
  train.integer("keep", &R::keep, {1, 1000}, "Newest checkpoints that are kept; the best one is kept beside them.");
  train.integer("patience", &R::patience, {0, kMillion},
                "Validations without a better loss after which training stops; 0: it never stops early.");
  train.integer("give_up_after", &R::give_up_after, {0, kMillion},
                "Steps in a row without finite gradients after which training stops as diverged; 0: it never does.");
  train.integer("threads", &R::threads, {0, 1024}, "Threads to compute with; 0: MH_THREADS, or every CPU there is.");
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = [] {
    std::vector<ConfigKey> all;
    add_task(all);
    add_model(all);
    add_tokenizer(all);
    add_data(all);
    add_optimizer(all);
    add_train(all);
    return all;
  }();
  return keys;
}

}  // namespace mh::detail
