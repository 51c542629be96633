// Attention's and the threads' part of the C ABI, over the C++ surface.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/c.h"
#include "multihead/c_boundary.h"
#include "multihead/ops/attention/attention.h"

namespace {

using mh::check;
using mh::Tensor;
using mh::detail::guarded;
using mh::detail::known_part;
using mh::detail::to_tensor;

Tensor optional_tensor(const char* op, const char* what, const mh_array* array) {
  return array ? to_tensor(op, what, array) : Tensor{};
}

mh::Mask mask_of(const char* op, const mh_attention_options& o) {
  mh::Mask mask;
  if (o.causal) mask = mask & mh::causal();
  if (o.has_offset) mask = mask & mh::positions(o.offset);
  if (o.offsets) mask = mask & mh::positions(to_tensor(op, "offsets", o.offsets));
  if (o.has_window) mask = mask & mh::window(o.window_left, o.window_right);
  if (o.has_prefix) mask = mask & mh::prefix(o.prefix);
  if (o.prefixes) mask = mask & mh::prefix(to_tensor(op, "prefixes", o.prefixes));
  if (o.lengths) mask = mask & mh::lengths(to_tensor(op, "lengths", o.lengths));
  if (o.keep) mask = mask & mh::keep(to_tensor(op, "keep", o.keep));
  if (o.drop) mask = mask & mh::drop(to_tensor(op, "drop", o.drop));
  mask.query_documents = optional_tensor(op, "query_documents", o.query_documents);
  mask.key_documents = optional_tensor(op, "key_documents", o.key_documents);
  return mask;
}

mh::Similarity similarity_of(const char* op, const mh_attention_options& o) {
  const std::optional<float> scale = o.has_scale ? std::optional<float>(o.scale) : std::nullopt;
  if (o.similarity == MH_DOT) return mh::DotSimilarity{scale};
  if (o.similarity == MH_EUCLIDEAN) return mh::EuclideanSimilarity{scale};
  check(o.similarity == MH_COSINE, "{}: the similarity is {}; expected one of mh_similarity", op, o.similarity);
  check(!o.has_scale, "{}: scale {} is given together with cosine similarity; expected tau, which takes its place", op,
        o.scale);
  return mh::CosineSimilarity{o.tau == 0 ? 1.0f : o.tau, optional_tensor(op, "taus", o.taus)};
}

mh::AttentionOptions options_of(const char* op, const mh_attention_options* given) {
  mh::AttentionOptions out;
  if (!given) return out;
  const mh_attention_options o = known_part(op, "options", given);
  check(o.reserved == 0, "{}: a reserved field of the options is {}; expected 0", op, o.reserved);
  out.mask = mask_of(op, o);
  out.similarity = similarity_of(op, o);
  out.cap = o.cap;
  out.dropout = {o.dropout, o.dropout_seed};
  if (o.bias) out.bias.emplace_back(mh::DenseBias{to_tensor(op, "bias", o.bias)});
  if (o.alibi_slopes) out.bias.emplace_back(mh::AlibiBias{to_tensor(op, "alibi_slopes", o.alibi_slopes)});
  if (o.t5_table) {
    out.bias.emplace_back(mh::T5Bias{to_tensor(op, "t5_table", o.t5_table), !o.t5_one_directional,
                                     o.t5_max_distance ? o.t5_max_distance : 128});
  }
  out.sink = optional_tensor(op, "sink", o.sink);
  check(!o.head_mix || !o.key_mix, "{}: head_mix and key_mix are both given; expected one at most", op);
  if (o.head_mix) out.score_mix = mh::HeadMix{to_tensor(op, "head_mix", o.head_mix)};
  if (o.key_mix) out.score_mix = mh::KeyMix{to_tensor(op, "key_mix", o.key_mix)};
  check(!o.cu_seqlens_q == !o.cu_seqlens_k, "{}: one of cu_seqlens_q and cu_seqlens_k is null; expected both or none",
        op);
  if (o.cu_seqlens_q) {
    out.packed =
        mh::Packed{to_tensor(op, "cu_seqlens_q", o.cu_seqlens_q), to_tensor(op, "cu_seqlens_k", o.cu_seqlens_k)};
  }
  return out;
}

// Gradients in the order of the biases that options_of makes.
mh::AttentionGradients gradients_of(const char* op, const mh_attention_gradients& g,
                                    const mh_attention_options* given) {
  mh::AttentionGradients out;
  out.dq = optional_tensor(op, "dq", g.dq);
  out.dk = optional_tensor(op, "dk", g.dk);
  out.dv = optional_tensor(op, "dv", g.dv);
  out.dsink = optional_tensor(op, "dsink", g.dsink);
  out.dtau = optional_tensor(op, "dtau", g.dtau);
  out.dmix = optional_tensor(op, "dmix", g.dmix);
  mh_attention_options o{};
  if (given) o = known_part(op, "options", given);
  const auto add = [&](const char* what, const mh_array* gradient, const mh_array* bias) {
    check(bias || !gradient, "{}: {} is asked for, but the call has nothing of the kind; expected null", op, what);
    if (bias) out.dbias.push_back(optional_tensor(op, what, gradient));
  };
  add("dbias", g.dbias, o.bias);
  add("dslopes", g.dslopes, o.alibi_slopes);
  add("dtable", g.dtable, o.t5_table);
  return out;
}

template <size_t N>
void write_text(char (&to)[N], const std::string& text) {
  const size_t count = std::min(N - 1, text.size());
  std::memcpy(to, text.data(), count);
  to[count] = 0;
}

std::vector<int32_t> list_of(const char* op, const char* what, const int32_t* list, int64_t count) {
  check(count >= 0 && count <= INT32_MAX, "{}: {} {} are chosen; expected 0 or more", op, count, what);
  if (!list) return {};
  check(count > 0, "{}: the list of {} is empty; expected at least one, or null for all", op, what);
  return {list, list + count};
}

}  // namespace

extern "C" {

mh_array mh_dense(void* data, mh_dtype dtype, int32_t rank, const int64_t* extent) {
  mh_array array{};
  array.data = data;
  array.dtype = static_cast<int32_t>(dtype);
  array.rank = rank;
  if (!extent || rank < 0 || rank > MH_MAX_RANK) return array;
  int64_t step = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    array.extent[axis] = extent[axis];
    array.stride[axis] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(extent[axis], 1), &step)) step = 0;
  }
  return array;
}

mh_status mh_attention_forward(const mh_attention_call* call, const mh_attention_options* options) {
  constexpr const char* op = "mh_attention_forward";
  return guarded([&] {
    const mh_attention_call c = known_part(op, "call", call);
    const Tensor q = to_tensor(op, "q", c.q), k = to_tensor(op, "k", c.k), v = to_tensor(op, "v", c.v);
    mh::attention_into({to_tensor(op, "o", c.o), optional_tensor(op, "lse", c.lse)}, q, k, v, options_of(op, options));
  });
}

mh_status mh_attention_backward(const mh_attention_call* call, const mh_attention_options* options,
                                const mh_attention_gradients* gradients) {
  constexpr const char* op = "mh_attention_backward";
  return guarded([&] {
    const mh_attention_call c = known_part(op, "call", call);
    const mh::AttentionGradients out = gradients_of(op, known_part(op, "gradients", gradients), options);
    mh::AttentionCall made;
    made.q = to_tensor(op, "q", c.q);
    made.k = to_tensor(op, "k", c.k);
    made.v = to_tensor(op, "v", c.v);
    made.result = {to_tensor(op, "o", c.o), to_tensor(op, "lse", c.lse)};
    mh::attention_backward_into(out, made, {to_tensor(op, "d_o", c.d_o), optional_tensor(op, "d_lse", c.d_lse)},
                                options_of(op, options));
  });
}

mh_status mh_attention_weights(const mh_attention_call* call, const mh_attention_options* options,
                               const mh_attention_choice* choice, const mh_array* weights) {
  constexpr const char* op = "mh_attention_weights";
  return guarded([&] {
    const mh_attention_call c = known_part(op, "call", call);
    mh_attention_choice chosen{};
    if (choice) chosen = known_part(op, "choice", choice);
    mh::AttentionCall made;
    made.q = to_tensor(op, "q", c.q);
    made.k = to_tensor(op, "k", c.k);
    made.result.lse = to_tensor(op, "lse", c.lse);
    mh::attention_weights_into(
        to_tensor(op, "weights", weights), made, options_of(op, options),
        {list_of(op, "heads", chosen.heads, chosen.head_count), list_of(op, "rows", chosen.rows, chosen.row_count)});
  });
}

mh_status mh_attention_explain(const mh_attention_call* call, const mh_attention_options* options,
                               mh_explanation* out) {
  constexpr const char* op = "mh_attention_explain";
  return guarded([&] {
    const mh_attention_call c = known_part(op, "call", call);
    const mh_explanation known = known_part(op, "out", out);
    const Tensor q = to_tensor(op, "q", c.q), k = to_tensor(op, "k", c.k), v = to_tensor(op, "v", c.v);
    const mh::Explanation said = mh::explain(q, k, v, options_of(op, options));
    mh_explanation answer{};
    answer.size = known.size;
    answer.flops = said.flops;
    answer.bytes = said.bytes;
    answer.scratch = said.scratch;
    answer.composed = said.composed;
    write_text(answer.kernel, said.kernel);
    write_text(answer.rung, said.rung);
    write_text(answer.why, said.why);
    std::memcpy(out, &answer, std::min(known.size, sizeof answer));
  });
}

const char* mh_last_error(void) { return mh::detail::last_error(); }

const char* mh_version(void) { return MH_VERSION; }

int32_t mh_threads(void) { return mh::threads(); }

mh_status mh_set_threads(int32_t count) {
  return guarded([&] { mh::set_threads(count); });
}

mh_status mh_set_executor(mh_run run, void* self) {
  return guarded([&] { mh::set_executor({run, self}); });
}

}  // extern "C"
