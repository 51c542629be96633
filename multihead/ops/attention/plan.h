// A checked attention call: what the caller said, turned into what kernels take. Internal to ops.
#pragma once

#include <string_view>
#include <vector>

#include "multihead/kernels/attention.h"
#include "multihead/kernels/composed_attention.h"
#include "multihead/kernels/relative_bias.h"
#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/kv_cache.h"

namespace mh::detail {

// The tensors of a call, for the end of a refusal; formatted only where one is thrown.
struct CallShapes {
  const Tensor* q = nullptr;
  const Tensor* k = nullptr;
  const Tensor* v = nullptr;  // may be null: weights have no values
};
std::string to_string(const CallShapes& shapes);

struct AttentionSizes {
  int64_t sequences = 0;  // B, or the sequences of a packed batch
  int64_t H = 0, Hkv = 0;
  int64_t Tq = 0, Tk = 0;  // the longest sequence's where packed
  int64_t Dk = 0, Dv = 0;
  int64_t batch = 0, rows = 0, keys = 0;  // of the arrays: packed ones have one batch entry of ΣTq rows, ΣTk keys
  bool packed = false;
};

// Views point into the caller's tensors and into the lists here, so a plan moves but is not copied.
struct AttentionPlan {
  std::string_view op;
  AttentionSizes size;
  View q;
  kernels::KeyValues kv;
  kernels::Scores scores;
  std::vector<kernels::Sequence> sequences;
  kernels::ScoreMixing mixing;
  Device device;
  std::vector<Tensor> held;  // what stands for the lists here on another device than the CPU
  const kernels::Sequence* placed_sequences = nullptr;

  Tensor relative;
  std::vector<float> scale, sink;
  std::vector<int32_t> query_documents, document_begin, document_end;
  kernels::Distances distances;
  int dense_bias = -1, relative_bias = -1;  // where in options.bias
  kernels::T5Buckets buckets;
  View table;  // of T5

  AttentionPlan() = default;
  AttentionPlan(AttentionPlan&&) = default;
  AttentionPlan& operator=(AttentionPlan&&) = default;

  // The list on the call's device.
  kernels::Sequences sequence_list() const { return {placed_sequences, static_cast<int64_t>(sequences.size())}; }
  int64_t relative_count() const { return relative ? relative.count() : 0; }
  // Bytes this plan holds itself.
  int64_t bytes() const;
};

// What a plan is made from. v is empty for weights and statistics.
struct AttentionInputs {
  const Tensor& q;
  const Tensor& k;
  const Tensor& v;
  const AttentionOptions& options;
};

// A small list of the options, wherever it lies, for reading here.
Tensor readable(const Tensor& list);

// Throws: invalid_argument, unsupported; before anything is written.
AttentionPlan plan_attention(std::string_view op, const AttentionInputs& inputs);
AttentionPlan plan_attention(std::string_view op, const Tensor& q, const KVCache& cache,
                             const AttentionOptions& options);

// Steps of plan_attention, in this order.
void plan_layout(AttentionPlan& plan, const AttentionInputs& inputs);
void plan_cache_layout(AttentionPlan& plan, const Tensor& q, const KVCache& cache);
void plan_masks(AttentionPlan& plan, const Mask& mask, const CallShapes& shapes);
void plan_scores(AttentionPlan& plan, const AttentionOptions& options, const CallShapes& shapes);

// ALiBi and T5 biases as arrays over the plan's distances. `decoding`: as attention_decode takes them, no array for
// ALiBi, and T5's only up to the distance past which all are equal.
void fill_relative(AttentionPlan& plan, bool decoding);

// Shapes of the outputs, and the kernels' view (batch, H, rows, D) or (batch, H, rows) of one.
Shape output_shape(const AttentionSizes& size);
Shape lse_shape(const AttentionSizes& size);
View heads_view(const AttentionSizes& size, const Tensor& t);
View lse_view(const AttentionSizes& size, const Tensor& t);

// Throws unless `out` has that type and shape and no element twice; of rows, unless its last stride is 1 also.
void check_output(std::string_view op, std::string_view what, const Tensor& out, const Shape& shape, DType dtype);
void check_rows(std::string_view op, std::string_view what, const Tensor& out, const Shape& shape, DType dtype);
// Throws where `out` shares memory with any tensor the call reads.
void check_apart(std::string_view op, std::string_view what, const Tensor& out, const AttentionInputs& inputs);

// Throws unless o, and lse where there is one, can take the results of the call.
void check_results(std::string_view op, const AttentionResult& out, const AttentionPlan& plan,
                   const AttentionInputs& inputs);

// `t` with axes in front to rank 4 and stride 0 where it repeats. Throws where it does not broadcast to (B, H, Tq, Tk).
View pair_view(std::string_view op, std::string_view what, const Tensor& t, const AttentionSizes& size);

}  // namespace mh::detail

template <>
struct fmt::formatter<mh::detail::CallShapes> : fmt::formatter<std::string_view> {
  auto format(const mh::detail::CallShapes& shapes, format_context& context) const {
    return fmt::formatter<std::string_view>::format(mh::detail::to_string(shapes), context);
  }
};
