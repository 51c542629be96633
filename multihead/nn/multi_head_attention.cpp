// Projections, heads, and the calls of attention between them.
#include "multihead/nn/multi_head_attention.h"

#include <cmath>

#include "multihead/nn/attention_observer.h"
#include "multihead/nn/disentangled.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/rows/rope.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

MultiHeadAttentionOptions complete(MultiHeadAttentionOptions o) {
  check(o.model > 0 && o.heads > 0, "MultiHeadAttention: model {} and heads {}; expected both above 0", o.model,
        o.heads);
  check(o.key_width > 0 || o.model % o.heads == 0,
        "MultiHeadAttention: {} heads do not divide the width {}; expected that, or a key_width", o.heads, o.model);
  const auto otherwise = [](int64_t& value, int64_t standard) {
    if (value == 0) value = standard;
  };
  otherwise(o.key_heads, o.heads);
  otherwise(o.key_width, o.model / o.heads);
  otherwise(o.value_width, o.key_width);
  otherwise(o.key_input, o.model);
  otherwise(o.value_input, o.model);
  otherwise(o.output, o.model);
  check(o.key_heads > 0 && o.heads % o.key_heads == 0, "MultiHeadAttention: {} key heads do not divide {} query heads",
        o.key_heads, o.heads);
  check(o.key_width > 0 && o.value_width > 0 && o.key_input > 0 && o.value_input > 0 && o.output > 0,
        "MultiHeadAttention: a width is negative; expected all above 0");
  return o;
}

Tensor alibi_slopes(int64_t heads) {
  const Tensor slopes = empty({heads});
  for (int64_t h = 0; h < heads; ++h)
    slopes.data<float>()[h] =
        static_cast<float>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads)));
  return slopes;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.view().data == b.view().data && a.trace() == b.trace() && a.shape() == b.shape();
}

Tensor split_heads(const Tensor& rows, int64_t width) {
  return reshape(rows, {rows.size(0), rows.size(1) / width, width});
}

// o (rows, H, D) times (H), or (B, H) chosen by the sequence of each row.
Tensor masked_heads(const Tensor& o, const Tensor& mask, const Sequences& at) {
  if (mask.rank() == 1) return mul(o, reshape(mask, {1, mask.size(0), 1}));
  const Tensor owner = empty({at.rows}, DType::i32);
  const int32_t* starts = at.starts.data<int32_t>();
  for (int64_t b = 0; b < at.count(); ++b)
    std::fill(owner.data<int32_t>() + starts[b], owner.data<int32_t>() + starts[b + 1], static_cast<int32_t>(b));
  const Tensor each = embedding(mask, owner);
  return mul(o, reshape(each, {at.rows, mask.size(1), 1}));
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const Params& at, const MultiHeadAttentionOptions& options)
    : options_(complete(options)),
      out_(at / "out_proj", options_.heads * options_.value_width, options_.output,
           options_.biases ? options_.biases->out : options_.bias) {
  const MultiHeadAttentionOptions& o = options_;
  if (o.separate) {
    make_separate(at);
  } else {
    make_joined(at);
  }
  const auto* t5 = std::get_if<T5Buckets>(&o.positions);
  if (t5 != nullptr && !o.shared_table)
    relative_ = &at.make("relative_bias", {t5->buckets, o.heads}, Init::normal(0.02));
  if (std::holds_alternative<Alibi>(o.positions)) slopes_ = alibi_slopes(o.heads).to(at.store().options().device);
  if (const auto* d = std::get_if<Disentangled>(&o.positions); d != nullptr && !d->shared_projections) {
    if (d->content_to_position) position_k_.emplace(at / "pos_key_proj", o.model, o.heads * o.key_width);
    if (d->position_to_content) position_q_.emplace(at / "pos_query_proj", o.model, o.heads * o.key_width);
  }
}

void MultiHeadAttention::make_joined(const Params& at) {
  const MultiHeadAttentionOptions& o = options_;
  const int64_t q_rows = o.heads * o.key_width, k_rows = o.key_heads * o.key_width,
                v_rows = o.key_heads * o.value_width;
  const int64_t k_end = q_rows + k_rows, end = k_end + v_rows;
  const Param* bias = o.bias ? &at.make("in_proj_bias", {end}, Init::zeros()) : nullptr;
  if (o.key_input == o.model && o.value_input == o.model) {
    const Param& w = at.make("in_proj_weight", {end, o.model}, Init::xavier());
    all_.emplace(w, bias, Linear::Part{0, end, 0});
    pair_.emplace(w, bias, Linear::Part{q_rows, end, q_rows});
    q_.emplace(w, bias, Linear::Part{0, q_rows, 0});
    k_.emplace(w, bias, Linear::Part{q_rows, k_end, q_rows});
    v_.emplace(w, bias, Linear::Part{k_end, end, k_end});
  } else {
    const auto separate = [&](std::string_view name, int64_t in, int64_t begin, int64_t rows) {
      return Linear(at.make(name, {rows, in}, Init::xavier()), bias, Linear::Part{0, rows, begin});
    };
    q_ = separate("q_proj_weight", o.model, 0, q_rows);
    k_ = separate("k_proj_weight", o.key_input, q_rows, k_rows);
    v_ = separate("v_proj_weight", o.value_input, k_end, v_rows);
  }
}

void MultiHeadAttention::make_separate(const Params& at) {
  const MultiHeadAttentionOptions& o = options_;
  const AttentionBiases has = o.biases.value_or(AttentionBiases{o.bias, o.bias, o.bias, o.bias});
  q_.emplace(at / "q_proj", o.model, o.heads * o.key_width, has.query);
  k_.emplace(at / "k_proj", o.key_input, o.key_heads * o.key_width, has.key);
  v_.emplace(at / "v_proj", o.value_input, o.key_heads * o.value_width, has.value);
  if (o.key_input == o.value_input) cross_.emplace(std::vector<Linear>{*k_, *v_});
  if (o.key_input == o.model && o.value_input == o.model) self_.emplace(std::vector<Linear>{*q_, *k_, *v_});
  if (o.head_norm) {
    q_norm_.emplace(at / "q_norm", o.key_width, *o.head_norm);
    k_norm_.emplace(at / "k_norm", o.key_width, *o.head_norm);
  }
}

Tensor MultiHeadAttention::with_heads(const Tensor& rows, const std::optional<Norm>& norm,
                                      const Tensor& positions) const {
  Tensor x = split_heads(rows, options_.key_width);
  if (norm) x = (*norm)(x);
  const auto* rotary = std::get_if<Rotary>(&options_.positions);
  if (rotary == nullptr) return x;
  return rope(x, positions, {.base = rotary->base, .interleaved = rotary->interleaved, .width = rotary->width});
}

Tensor MultiHeadAttention::queries(const Tensor& x, const Tensor& positions) const {
  return with_heads((*q_)(x), q_norm_, positions);
}

MultiHeadAttention::KeysValues MultiHeadAttention::keys_values(const Tensor& k, const Tensor& v,
                                                               const Tensor& positions) const {
  const int64_t k_rows = options_.key_heads * options_.key_width, v_rows = options_.key_heads * options_.value_width;
  std::vector<Tensor> parts;
  if (pair_ && same(k, v)) {
    parts = split((*pair_)(k), 1, {k_rows, v_rows});
  } else if (cross_ && same(k, v)) {
    parts = (*cross_)(k);
  } else {
    parts = {(*k_)(k), (*v_)(v)};
  }
  return {with_heads(parts[0], k_norm_, positions), split_heads(parts[1], options_.value_width)};
}

MultiHeadAttention::Heads MultiHeadAttention::project(const Tensor& x, const Tensor& positions,
                                                      const RepeatedRows& repeats) const {
  if (!all_ && !self_) {
    const KeysValues kv = keys_values(x, x, positions);
    return {queries(x, positions), kv.k, kv.v};
  }
  const int64_t q_rows = options_.heads * options_.key_width, k_rows = options_.key_heads * options_.key_width,
                v_rows = options_.key_heads * options_.value_width;
  std::vector<Tensor> parts;
  if (self_ && !repeats.which) {
    parts = (*self_)(x);
  } else {
    const auto product = [&](const Tensor& rows) { return all_ ? (*all_)(rows) : self_->joined(rows); };
    const Tensor all = repeats.which ? embedding(product(embedding(x, repeats.first)), repeats.which) : product(x);
    parts = split(all, 1, {q_rows, k_rows, v_rows});
  }
  return {with_heads(parts[0], q_norm_, positions), with_heads(parts[1], k_norm_, positions),
          split_heads(parts[2], options_.value_width)};
}

Tensor MultiHeadAttention::disentangled(const Heads& heads, const Sequences& at, const AttendOptions& options,
                                        const Pass& pass) const {
  const auto& d = std::get<Disentangled>(options_.positions);
  check(static_cast<bool>(options.relative), "attend: the table of distances is missing; expected f32 ({}, {})",
        2 * d.span(), options_.model);
  const Tensor table = cast(options.relative, pass.compute());
  const auto projected = [&](bool wanted, const Linear& own, const std::optional<Linear>& extra) {
    return wanted ? split_heads(d.shared_projections ? own(table) : (*extra)(table), options_.key_width) : Tensor();
  };
  return disentangled_bias({.q = heads.q,
                            .k = heads.k,
                            .position_k = projected(d.content_to_position, *k_, position_k_),
                            .position_q = projected(d.position_to_content, *q_, position_q_)},
                           at, d);
}

AttentionOptions MultiHeadAttention::call_options(Pass& pass, const Mask& mask) const {
  const DropoutOptions drop = pass.dropout(options_.dropout);
  const Mask kept = options_.window < 0 ? mask : mask & window(options_.window, options_.window);
  AttentionOptions out{.mask = kept, .similarity = options_.similarity, .dropout = {drop.p, drop.seed}};
  if (const auto* t5 = std::get_if<T5Buckets>(&options_.positions))
    out.bias.push_back(T5Bias{relative_->value, t5->bidirectional, t5->max_distance});
  if (slopes_) out.bias.push_back(AlibiBias{slopes_});
  return out;
}

Tensor MultiHeadAttention::attend(const Heads& heads, const Sequences& queries, const Sequences& keys, Pass& pass,
                                  const AttendOptions& options) const {
  AttentionOptions call = call_options(pass, options.mask);
  call.packed = Packed{queries.starts, keys.starts};
  if (std::holds_alternative<Disentangled>(options_.positions))
    call.bias.push_back(DenseBias{disentangled(heads, queries, options, pass)});
  const AttentionResult result = attention(heads.q, heads.k, heads.v, call);
  if (options.weights != nullptr) *options.weights = attention_weights(heads.q, heads.k, result.lse, call);
  const Tensor o = options.head_mask ? masked_heads(result.o, options.head_mask, queries) : result.o;
  if (pass.observer() == nullptr) return o;
  const bool cross = queries.starts.view().data != keys.starts.view().data;
  return pass.observer()->attended({{heads.q, heads.k, heads.v, {o, result.lse}}, call, cross});
}

Tensor MultiHeadAttention::finish(const Tensor& o, Pass& pass, const SublayerEnd& ending) const {
  const Tensor rows = reshape(o, {o.size(0), options_.heads * options_.value_width});
  if (ending.residual) return out_(rows, ending, pass);
  return out_(rows, {.result = DType::f32});
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Sequences& at, Pass& pass, const AttendOptions& options,
                                      const SublayerEnd& ending) const {
  return finish(attend(project(x, at.positions), at, at, pass, options), pass, ending);
}

Tensor MultiHeadAttention::operator()(const Tensor& q, const Tensor& k, const Tensor& v, Pass& pass,
                                      const AttendOptions& options) const {
  check(q.rank() == 3 && k.rank() == 3 && v.rank() == 3,
        "MultiHeadAttention: inputs of ranks {}, {}, {}; expected (B, T, C) each; q is {}, k is {}, v is {}", q.rank(),
        k.rank(), v.rank(), q.shape(), k.shape(), v.shape());
  const int64_t batch = q.size(0), tq = q.size(1), tk = k.size(1);
  const Sequences at_q = Sequences::uniform(batch, tq), at_k = Sequences::uniform(batch, tk);
  const auto rows = [](const Tensor& x) { return reshape(x, {x.size(0) * x.size(1), x.size(2)}); };
  const auto apart = [&](const Tensor& x, int64_t length) {
    return transpose(reshape(x, {batch, length, x.size(1), x.size(2)}), 1, 2);
  };
  const Tensor k_rows = rows(k), v_rows = same(k, v) ? k_rows : rows(v);
  const KeysValues kv = keys_values(k_rows, v_rows, at_k.positions);
  const Tensor queries_4d = apart(queries(rows(q), at_q.positions), tq);
  const Tensor o = attention(queries_4d, apart(kv.k, tk), apart(kv.v, tk), call_options(pass, options.mask)).o;
  Tensor flat = reshape(transpose(o, 1, 2), {batch * tq, options_.heads, options_.value_width});
  if (options.head_mask) flat = masked_heads(flat, options.head_mask, at_q);
  return reshape(finish(flat, pass, {}), {batch, tq, options_.output});
}

void MultiHeadAttention::pack(DType compute, Use use) {
  const auto pack_part = [&](auto& part) {
    if (part) part->pack(compute);
  };
  const bool together = use == Use::self && (all_ || self_);
  if (together) {
    pack_part(all_);
    pack_part(self_);
  } else {
    pack_part(q_);
    if (pair_ || cross_) {
      pack_part(pair_);
      pack_part(cross_);
    } else {
      pack_part(k_);
      pack_part(v_);
    }
  }
  if (std::holds_alternative<Disentangled>(options_.positions)) {
    pack_part(q_);
    pack_part(k_);
    pack_part(position_q_);
    pack_part(position_k_);
  }
  out_.pack(compute);
}

}  // namespace mh
