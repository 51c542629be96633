// The one table of keys: reading, writing and the page of documentation all walk it.
#include "multihead/train/config/config_keys.h"

#include "multihead/tasks/task_type.h"
#include "multihead/train/config/config_section.h"

namespace mh::detail {

namespace {

void add_task(std::vector<ConfigKey>& keys) {
  using T = TaskConfig;
  Section<T> task(keys, "task", &TrainConfig::task);
  Names<TaskKind> kinds;
  std::vector<std::string> learned;
  for (const TaskType& type : task_types()) {
    kinds.emplace_back(type.name, type.kind);
    learned.push_back(type.learns);
  }
  task.choice<TaskKind>("kind", &T::kind, kinds, fmt::format("What is learned: {}.", fmt::join(learned, "; ")));
  task.flag("packed", &T::packed,
            "Of a language model: whether windows of data.max_length tokens run across lines; else every line is "
            "learned for itself.");
  task.integer(
      "stride", &T::stride, {0, kMillion},
      "Of a language model: tokens between the beginnings of two windows where a text is scored, so that all but "
      "those of the first window are predicted from more text; at most data.max_length; 0: windows stand side by "
      "side.");
  task.integer("samples", &T::samples, {0, 100}, "Texts that a language model writes at each validation.");
  task.text(
      "metric", &T::metric,
      "The metric that tells the better model: of a classifier \"accuracy\", \"macro_f1\", \"matthews\" or \"loss\", with task.labels "
      "others; empty: the task's own, accuracy or the loss.");
  task.choice<LabelKind>(
      "labels", &T::labels, {{"one", LabelKind::one}, {"several", LabelKind::several}, {"number", LabelKind::number}},
      "Of classify: what a text has: one label; any number of labels that data.label_separator parts, judged by "
      "\"micro_f1\", \"macro_f1\", \"exact_match\" or \"loss\"; or a number, judged by \"pearson\", \"spearman\", "
      "\"mean_absolute_error\" or \"loss\".");
  task.choice<ClassWeights>(
      "class_weights", &T::class_weights, {{"none", ClassWeights::none}, {"balanced", ClassWeights::balanced}},
      "Of a classifier: how much an example counts in the loss: all the same, or so that every class counts the "
      "same in all.");
}

void add_model(std::vector<ConfigKey>& keys) {
  using M = TransformerConfig;
  using R = RecurrentChoice;
  Section<R> recurrent(keys, "model", &TrainConfig::recurrent);
  recurrent.choice<ModelKind>(
      "kind", &R::kind,
      {{"transformer", ModelKind::transformer},
       {"lstm", ModelKind::lstm},
       {"gru", ModelKind::gru},
       {"rnn", ModelKind::rnn},
       {"bert", ModelKind::bert},
       {"distilbert", ModelKind::distilbert},
       {"modernbert", ModelKind::modernbert}},
      "The architecture: the Transformer, for which task.kind says with which stacks; of translation also "
      "a recurrent encoder and decoder, which read width, hidden, attention, layers, dropout, tied and "
      "max_length; of classify, tag and answer one of Hugging Face's families, and transformers loads the folder. Of "
      "image_class and speech_class it is always a ViT.");
  recurrent.choice<PairAttention>("attention", &R::attention,
                                  {{"none", PairAttention::none},
                                   {"additive", PairAttention::additive},
                                   {"multiplicative", PairAttention::multiplicative}},
                                  "How a recurrent decoder looks at the source: not at all; Bahdanau's way; Luong's.");
  recurrent.integer(
      "hidden", &R::hidden, {1, 65536},
      "Width of a recurrent decoder's state; with attention even and at most 512, half of it in each direction of "
      "the encoder.");
  Section<StartConfig>(keys, "model", &TrainConfig::start)
      .text(
          "from", &StartConfig::from,
          "The folder of a model, or its file, whose weights training starts from; empty: fresh weights. Of classify, "
          "tag and answer also any encoder of Hugging Face's, of image_class and speech_class a ViT or DeiT.");
  Section<M> model(keys, "model", &TrainConfig::model);
  model.integer("vocabulary", &M::vocabulary, {0, 10 * kMillion},
                "Tokens the model knows; 0: as many as the tokenizer has.");
  model.integer("width", &M::width, {1, 65536}, "Width of the model, d_model in the paper; a multiple of heads.");
  model.integer("heads", &M::heads, {1, 4096}, "Heads of every attention.");
  model.integer("feed_forward", &M::feed_forward, {1, kMillion}, "Width of the feed-forward's middle.");
  model.integer("encoder_layers", &M::encoder_layers, {0, 1024},
                "Layers that read the source; a language model has none, whatever stands here.");
  model.integer("decoder_layers", &M::decoder_layers, {1, 1024},
                "Layers that write the target, or all layers of a language model.");
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

void add_head(std::vector<ConfigKey>& keys) {
  using H = HeadConfig;
  constexpr Numbers kShareOrNone{.low = -1, .high_excluded = true};
  Section<H> head(keys, "model", &TrainConfig::head);
  head.choice<Pooling>("pooling", &H::pooling, {{"mean", Pooling::mean}, {"first", Pooling::first}},
                       "Of classify: the row that stands for a text: the mean of all, or the first.");
  head.number("embedding_dropout", &H::embedding_dropout, kShareOrNone,
              "Of classify: share of the embeddings dropped in training; -1: dropout.");
  head.number("classifier_dropout", &H::classifier_dropout, kShareOrNone,
              "Of classify: share of the text's row dropped in training before the last map; -1: dropout.");
  head.integer("patch", &H::patch, {1, 4096},
               "Of image_class: pixels a side of the squares a picture is cut into; of speech_class: frames of "
               "a token.");
}

void add_tokenizer(std::vector<ConfigKey>& keys) {
  using T = TokenizerConfig;
  Section<T> tokenizer(keys, "tokenizer", &TrainConfig::tokenizer);
  tokenizer.text("path", &T::path,
                 "An existing tokenizer.json; empty: one is learned from the training data, by the keys below.");
  tokenizer.choice<TokenizerKind>(
      "kind", &T::kind,
      {{"bpe", TokenizerKind::bpe}, {"words", TokenizerKind::words}, {"characters", TokenizerKind::characters}},
      "What is learned: byte-level BPE; whole words, where a word that was not seen is unknown; or characters, white "
      "space too.");
  tokenizer.integer("min_count", &T::min_count, {1, kMillion},
                    "Of words and characters: those seen less often are unknown.");
  tokenizer.integer(
      "vocabulary", &T::vocabulary, {260, 10 * kMillion},
      "Of bpe: tokens to learn, the 4 special ones and the 256 bytes included; of characters: tokens at most.");
  tokenizer.flag("lowercase", &T::lowercase, "Whether text is lower-cased.");
  tokenizer.choice<Normalisation>(
      "normalise", &T::normalise,
      {{"none", Normalisation::none}, {"nfc", Normalisation::nfc}, {"nfkc", Normalisation::nfkc}},
      "Unicode normalisation of text; none keeps every byte.");
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
      "How the learning rate goes on after the warm-up: down to floor along a cosine or a line, falling as "
      "1/sqrt(step), or as it is.");
  optimizer.integer("warmup", &O::warmup, {0, kMillion * 1000}, "Steps over which the learning rate rises from 0.");
  optimizer.number("floor", &O::floor, {.high = 1},
                   "Share of learning_rate below which the schedule does not fall: where a cosine or a line ends.");
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
  train.number("layer_decay", &R::layer_decay, {.high = 1, .low_excluded = true},
               "The learning rate of a layer is that of the one above it times this, the embeddings' that of the first "
               "layer times this; what comes after the last layer has the whole rate.");
  train.integer("frozen", &R::frozen, {0, 4096},
                "With model.from: the embeddings and so many of the first layers stay as they are; 0: all is learned.");
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
    add_head(all);
    add_tokenizer(all);
    add_data(all);
    add_optimizer(all);
    add_train(all);
    return all;
  }();
  return keys;
}

}  // namespace mh::detail
