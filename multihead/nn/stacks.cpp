// Runs stacks of layers, whole sequences at a time or step by step.
#include "multihead/nn/stacks.h"

#include <functional>
#include <memory>
#include <utility>

#include "multihead/autograd/recompute.h"
#include "multihead/ops/elementwise.h"

namespace mh {

namespace {

using LayerCall = std::function<Tensor(const std::vector<Tensor>& inputs, Pass& pass)>;

// The layer, run now; with `again` only its inputs are kept. Both runs draw the same random numbers.
Tensor layer_call(bool again, const std::vector<Tensor>& inputs, const std::vector<Tensor>& params, Pass& pass,
                  const LayerCall& call) {
  if (!again) return call(inputs, pass);
  const auto after = std::make_shared<Pass>(pass);
  const Tensor y = recompute(inputs, params, [before = pass, after, call](const std::vector<Tensor>& in) {
    Pass drawn = before;
    const Tensor out = call(in, drawn);
    *after = drawn;
    return out;
  });
  pass = *after;
  return y;
}

// The table of T5Buckets that all layers read, where the stack has it.
const Param* shared_table(const Params& at, const StackOptions& options) {
  const auto* t5 = std::get_if<T5Buckets>(&options.block.positions);
  if (!options.shared_positions || t5 == nullptr) return nullptr;
  return &at.make("relative_bias", {t5->buckets, options.block.heads}, Init::normal(0.02));
}

void check_stack(const StackOptions& o) {
  const int64_t sets = o.groups > 0 ? o.groups : o.layers;
  check(o.layers >= 0 && sets <= o.layers && (o.blocks.empty() || static_cast<int64_t>(o.blocks.size()) == o.layers),
        "stack: {} layers, {} sets of weights and options for {} layers; expected at most as many sets, and options "
        "for each or none",
        o.layers, sets, o.blocks.size());
}

// One layer's part of a record: where its weights go, and what it gave.
class Recording {
 public:
  explicit Recording(StackRecord* record) : record_(record) {}
  Tensor* place(std::vector<Tensor> StackRecord::*list) const {
    if (record_ == nullptr || !record_->weights) return nullptr;
    return &(record_->*list).emplace_back();
  }
  void state(const Tensor& x) const {
    if (record_ != nullptr && record_->states) record_->hidden_states.push_back(x);
  }
  void last(const Tensor& x) const {
    if (record_ != nullptr && record_->states && record_->last_normed) record_->hidden_states.back() = x;
  }

 private:
  StackRecord* record_;
};

}  // namespace

Encoder::Encoder(const Params& at, const StackOptions& options) : options_(options) {
  check_stack(options);
  table_ = shared_table(at, options);
  const int64_t sets = options.groups > 0 ? options.groups : options.layers;
  for (int64_t n = 0; n < sets; ++n) {
    const Params here = at / "layers" / n;
    layers_.emplace_back(here, options.block_of(n), table_ != nullptr);
    if (table_ != nullptr) layers_.back().self_attn.read_table(*table_);
    params_.push_back(here.store().below(here.path()));
    if (table_ != nullptr) params_.back().push_back(table_->value);
  }
  if (const auto* d = std::get_if<Disentangled>(&options.block.positions)) {
    relative_ = &at.make("relative", {2 * d->span(), options.block.width}, Init::normal(0.02));
    if (options.normed_relative)
      relative_norm_.emplace(at / "relative_norm", options.block.width, options.block.normalisation);
  }
  if (options.last_norm) norm_.emplace(at / "norm", options.block.width, options.block.normalisation);
}

size_t Encoder::place(int64_t n) const {
  return static_cast<size_t>(options_.groups > 0 ? n * options_.groups / options_.layers : n);
}

// The table of distances, normalised once for all layers.
Tensor Encoder::relative() const {
  if (relative_ == nullptr) return {};
  return relative_norm_ ? (*relative_norm_)(relative_->value) : relative_->value;
}

Tensor Encoder::operator()(Tensor x, const Sequences& at, Pass& pass, const AttendOptions& options,
                           StackRecord* record) const {
  AttendOptions each = options;
  if (options_.causal) each.mask = each.mask & causal();
  const Recording shown(record);
  const Tensor table = relative();
  shown.state(x);
  for (int64_t n = 0; n < options_.layers; ++n) {
    each.weights = shown.place(&StackRecord::attentions);
    const std::vector<Tensor> inputs = table ? std::vector<Tensor>{x, table} : std::vector<Tensor>{x};
    x = layer_call(options_.recompute, inputs, params_[place(n)], pass,
                   [&layer = layers_[place(n)], at, each](const std::vector<Tensor>& in, Pass& drawn) {
                     AttendOptions here = each;
                     if (in.size() > 1) here.relative = in[1];
                     return layer(in[0], at, drawn, here);
                   });
    shown.state(x);
  }
  x = finish(x, pass);
  shown.last(x);
  return x;
}

Tensor Encoder::begin(Tensor x, const Sequences& at, AttentionState& state, Pass& pass) const {
  check(options_.causal, "begin: the stack is not causal; expected one in which no row sees later ones");
  for (int64_t n = 0; n < options_.layers; ++n) {
    const MultiHeadAttention& module = layer(n).self_attn;
    x = layer(n).step(x, pass, [&](const Tensor& rows) {
      const MultiHeadAttention::Heads heads = module.project(rows, at.positions);
      state.keep(static_cast<size_t>(n), heads, at);
      return module.attend(heads, at, at, pass, {.mask = causal()});
    });
  }
  state.advance(at);
  return finish(x, pass);
}

Tensor Encoder::step(Tensor x, const Tensor& positions, AttentionState& state, Pass& pass) const {
  check(options_.causal, "step: the stack is not causal; expected one in which no row sees later ones");
  for (int64_t n = 0; n < options_.layers; ++n) {
    const MultiHeadAttention& module = layer(n).self_attn;
    x = layer(n).step(x, pass, [&](const Tensor& rows) {
      return state.self_attend(static_cast<size_t>(n), module, module.project(rows, positions), pass);
    });
  }
  state.advance();
  return finish(x, pass);
}

Tensor Encoder::finish(const Tensor& x, const Pass& pass) const {
  return norm_ ? (*norm_)(x, pass.compute()) : cast(x, pass.compute());
}

void Encoder::pack(DType compute) {
  for (EncoderLayer& layer : layers_) layer.pack(compute);
}

Decoder::Decoder(const Params& at, const StackOptions& options) : options_(options) {
  check_stack(options);
  check(options.groups == 0, "decoder: {} sets of weights for {} layers; expected one for each", options.groups,
        options.layers);
  table_ = shared_table(at, options);
  for (int64_t n = 0; n < options.layers; ++n) {
    const Params here = at / "layers" / n;
    layers_.emplace_back(here, options.block_of(n), table_ != nullptr);
    if (table_ != nullptr) layers_.back().self_attn.read_table(*table_);
    params_.push_back(here.store().below(here.path()));
    if (table_ != nullptr) params_.back().push_back(table_->value);
  }
  if (options.last_norm) norm_.emplace(at / "norm", options.block.width, options.block.normalisation);
}

Tensor Decoder::operator()(Tensor x, const Sequences& at, const EncoderOutput& memory, Pass& pass,
                           StackRecord* record) const {
  const Recording shown(record);
  shown.state(x);
  for (size_t n = 0; n < layers_.size(); ++n) {
    const AttendOptions self{.weights = shown.place(&StackRecord::attentions)};
    const AttendOptions cross{.weights = shown.place(&StackRecord::cross_attentions)};
    x = layer_call(
        options_.recompute, {x, memory.rows}, params_[n], pass,
        [&layer = layers_[n], at, memory_at = memory.at, self, cross](const std::vector<Tensor>& in, Pass& drawn) {
          return layer(in[0], at, {in[1], memory_at}, drawn, self, cross);
        });
    shown.state(x);
  }
  x = finish(x, pass);
  shown.last(x);
  return x;
}

Tensor Decoder::step(Tensor x, const Tensor& positions, AttentionState& state, Pass& pass, RepeatedRows repeats) const {
  for (size_t n = 0; n < layers_.size(); ++n) {
    const DecoderLayer& layer = layers_[n];
    x = layer.step(
        x, pass,
        [&](const Tensor& rows) {
          const auto heads = layer.self_attn.project(rows, positions, std::exchange(repeats, {}));
          return state.self_attend(n, layer.self_attn, heads, pass);
        },
        [&](const Tensor& rows) {
          return state.cross_attend(n, layer.cross_attn, layer.cross_attn.queries(rows, positions), pass);
        });
  }
  state.advance();
  return finish(x, pass);
}

Tensor Decoder::finish(const Tensor& x, const Pass& pass) const {
  return norm_ ? (*norm_)(x, pass.compute()) : cast(x, pass.compute());
}

void Decoder::pack(DType compute) {
  for (DecoderLayer& layer : layers_) layer.pack(compute);
}

}  // namespace mh
