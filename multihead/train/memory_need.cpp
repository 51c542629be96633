// Sums over the matrices of a model.
#include "multihead/train/memory_need.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/tasks/task_type.h"

namespace mh::detail {

namespace {

constexpr int64_t kSmallestVocabulary = 260;  // the special tokens and the 256 bytes
constexpr int64_t kT5Buckets = 32;

// Of matrices, which have bf16 copies, and of vectors.
struct Sizes {
  int64_t matrices = 0, vectors = 0;
};

// One stack has no cross-attention, and an encoder alone no output.
Sizes sizes_of(const TransformerConfig& c, TaskKind kind) {
  const auto& type = task_type(kind);
  const int64_t stacks = int{type.encoder} + int{type.decoder};
  const int64_t crossed = stacks == 2 ? c.decoder_layers : 0;
  const int64_t layers = (type.encoder ? c.encoder_layers : 0) + (type.decoder ? c.decoder_layers : 0);
  const int64_t attentions = layers + crossed, norms = 2 * layers + crossed + stacks;
  const int64_t untied = int{type.encoder} + 2 * int{type.decoder};  // source; target and output
  const int64_t middle = c.feed_forward * (c.middle == Middle::swiglu || c.middle == Middle::geglu ? 2 : 1);
  Sizes out{.matrices = attentions * 4 * c.width * c.width + layers * (middle + c.feed_forward) * c.width +
                        (c.tied ? 1 : untied) * c.vocabulary * c.width,
            .vectors = attentions * 4 * c.width + layers * (middle + c.width) + norms * 2 * c.width};
  if (c.positions == ModelPositions::learned) out.matrices += c.max_length * c.width;
  if (c.positions == ModelPositions::t5) out.matrices += layers * kT5Buckets * c.heads;
  return out;
}

// The tables, and the first layers, without what comes after them: what train.frozen says.
int64_t frozen_parameters(const TrainConfig& config) {
  const auto& type = task_type(config.task.kind);
  if (config.train.frozen == 0 || config.recurrent.is_recurrent()) return 0;
  TransformerConfig c = config.model;
  const int64_t encoder = type.encoder ? c.encoder_layers : 0;
  c.encoder_layers = std::min(encoder, config.train.frozen);
  c.decoder_layers = std::min(c.decoder_layers, config.train.frozen - c.encoder_layers);
  const Sizes sizes = sizes_of(c, config.task.kind);
  const int64_t norms = 2 * (int{type.encoder} + int{type.decoder}) * c.width;
  const int64_t output = type.decoder && !c.tied ? c.vocabulary * c.width : 0;
  return sizes.matrices + sizes.vectors - norms - output;
}

// Of layers of one direction, the first of which reads `input` and the others `between` numbers.
Sizes sizes_of_cells(int64_t gates, int64_t hidden, int64_t input, int64_t between, int64_t layers) {
  return {.matrices = gates * hidden * (input + (layers - 1) * between + layers * hidden),
          .vectors = 2 * layers * gates * hidden};
}

Sizes sizes_of(const TransformerConfig& sizes, const RecurrentChoice& choice) {
  const RecurrentConfig c = recurrent_config(sizes, choice);
  const int64_t gates = kGates[static_cast<size_t>(c.cell)];
  const bool attends = c.attention != PairAttention::none, additive = c.attention == PairAttention::additive;
  const int64_t directions = attends ? 2 : 1, half = c.hidden / directions;
  const Sizes encoder = sizes_of_cells(gates, half, c.width, directions * half, c.encoder_layers),
              decoder =
                  sizes_of_cells(gates, c.hidden, c.width + (additive ? c.hidden : 0), c.hidden, c.decoder_layers);
  const int64_t attention = (additive ? 2 : attends ? 1 : 0) * c.hidden * c.hidden + (additive ? c.hidden : 0);
  return {.matrices = directions * encoder.matrices + decoder.matrices + attention +
                      (attends ? 2 : 1) * c.hidden * c.width + (c.tied ? 1 : 3) * c.vocabulary * c.width,
          .vectors = directions * encoder.vectors + decoder.vectors + c.width};
}

Sizes sizes_of(const TrainConfig& config) {
  return config.recurrent.is_recurrent() ? sizes_of(config.model, config.recurrent)
                                         : sizes_of(config.model, config.task.kind);
}

double gibibytes(int64_t bytes) { return static_cast<double>(bytes) / (int64_t{1} << 30); }

}  // namespace

int64_t parameter_count(const TransformerConfig& config, TaskKind kind) {
  const Sizes sizes = sizes_of(config, kind);
  return sizes.matrices + sizes.vectors;
}

int64_t parameter_count(const TrainConfig& config) {
  const Sizes sizes = sizes_of(config);
  return sizes.matrices + sizes.vectors;
}

int64_t training_bytes(const TrainConfig& config) {
  const Sizes sizes = sizes_of(config);
  const int64_t copies = config.train.ema > 0 ? 5 : 4;  // weights, gradients, two moments, the mean
  const int64_t halves = config.train.precision == DType::f32 ? 0 : sizes.matrices;
  const bool table = !config.recurrent.is_recurrent() && config.model.positions == ModelPositions::sinusoidal;
  return 4 * copies * (sizes.matrices + sizes.vectors) - 4 * (copies - 1) * frozen_parameters(config) + 2 * halves +
         (table ? 4 * config.model.max_length * config.model.width : 0);
}

void check_fits_memory(const TrainConfig& config, int64_t available) {
  TrainConfig least = config;
  least.model.vocabulary = std::max(least.model.vocabulary, kSmallestVocabulary);
  const int64_t needed = training_bytes(least);
  check(needed <= available,
        "train: the model has {} parameters, and training it takes at least {} bytes ({:.1f} GiB); expected at most {} "
        "({:.1f} GiB), the memory that is free; try a smaller model.width, model.feed_forward, vocabulary or fewer "
        "layers",
        parameter_count(least), needed, gibibytes(needed), available, gibibytes(available));
}

void fail_out_of_memory(const TrainConfig& config) {
  fail(ErrorKind::invalid_argument,
       "train: there is not enough memory; try a smaller data.tokens_per_batch (it is {}), model.width (it is {}) or "
       "data.max_length (it is {})",
       config.data.tokens_per_batch, config.model.width, config.data.max_length);
}

}  // namespace mh::detail
