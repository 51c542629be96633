// From a case to the tensors and options of its call.
#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/base/random.h"
#include "multihead/check/cases/cases.h"
#include "multihead/check/problem.h"

namespace mh {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The lengths of a call, and its numbers one after the other.
class Maker {
 public:
  explicit Maker(const AttentionCase& c) : c_(c), random_(c.seed, 17) {
    if (!c.packed) return;
    for (int64_t b = 0; b < c.B; ++b) {
      q_ends_.push_back(q_ends_.back() + static_cast<int32_t>(b == 0 ? c.Tq : random_.below(c.Tq + 1)));
      k_ends_.push_back(k_ends_.back() + static_cast<int32_t>(b == c.B - 1 ? c.Tk : random_.below(c.Tk + 1)));
    }
  }

  CaseInputs make() {
    CaseInputs in;
    make_rows(in);
    if (c_.d_lse) in.d_lse = randn(c_.packed ? Shape{c_.H, q_ends_.back()} : Shape{c_.B, c_.H, c_.Tq}, next_seed());
    AttentionOptions& o = in.options;
    make_masks(o.mask);
    make_bias(o.bias);
    make_similarity(o.similarity);
    o.cap = c_.cap;
    if (c_.sink) o.sink = randn({c_.H}, next_seed());
    if (c_.dropout > 0) o.dropout = {.p = c_.dropout, .seed = random_.bits() * uint64_t{0x100000001}};
    if (c_.packed) o.packed = Packed{list(q_ends_), list(k_ends_)};
    if (c_.mix == CaseMix::heads) o.score_mix = HeadMix{scaled(randn({c_.H, c_.H}, next_seed()), 1 / std::sqrt(c_.H))};
    if (c_.mix == CaseMix::keys) {
      const double keys = static_cast<double>(std::max<int64_t>(c_.Tk, 1));
      o.score_mix = KeyMix{scaled(randn({c_.Tk, c_.Tk}, next_seed()), 1 / std::sqrt(keys))};
    }
    return in;
  }

 private:
  uint64_t next_seed() { return random_.bits(); }

  static Tensor list(const std::vector<int32_t>& numbers) {
    return tensor<int32_t>(numbers, {static_cast<int64_t>(numbers.size())});
  }

  static Tensor scaled(Tensor t, double factor) {
    for (int64_t n = 0; n < t.count(); ++n) t.data<float>()[n] *= static_cast<float>(factor);
    return t;
  }

  // (B, heads, T, D), packed (ΣT, heads, D), in the layout of the case.
  Tensor rows(int64_t heads, int64_t length, int64_t total, int64_t width) const {
    const bool packed = c_.packed;
    switch (c_.layout) {
      case CaseLayout::bthd:
        return packed ? empty({heads, total, width}, c_.dtype).transpose(0, 1)
                      : empty({c_.B, length, heads, width}, c_.dtype).transpose(1, 2);
      case CaseLayout::padded: {
        const Shape shape =
            packed ? Shape{total + 3, heads + 1, width + 5} : Shape{c_.B, heads + 1, length + 3, width + 5};
        const Tensor wide = full(shape, kNan, c_.dtype);
        const int t = packed ? 0 : 2, h = 1, d = packed ? 2 : 3;
        return wide.slice(t, 1, (packed ? total : length) + 1).slice(h, 0, heads).slice(d, 2, width + 2);
      }
      default: return packed ? empty({total, heads, width}, c_.dtype) : empty({c_.B, heads, length, width}, c_.dtype);
    }
  }

  void make_rows(CaseInputs& in) {
    const int64_t q_total = q_ends_.back(), k_total = k_ends_.back();
    in.q = rows(c_.H, c_.Tq, q_total, c_.Dk);
    in.k = rows(c_.Hkv, c_.Tk, k_total, c_.Dk);
    in.v = rows(c_.Hkv, c_.Tk, k_total, c_.Dv);
    in.d_o = rows(c_.H, c_.Tq, q_total, c_.Dv);
    if (c_.layout == CaseLayout::shared) {
      const int d = c_.packed ? 2 : 3;
      const bool all = c_.H == c_.Hkv && c_.Tq == c_.Tk && !c_.packed;
      const Tensor one = rows(c_.Hkv, c_.Tk, k_total, (all ? 2 : 1) * c_.Dk + c_.Dv);
      in.k = one.slice(d, 0, c_.Dk);
      in.v = one.slice(d, c_.Dk, c_.Dk + c_.Dv);
      if (all) in.q = one.slice(d, c_.Dk + c_.Dv, 2 * c_.Dk + c_.Dv);
    }
    for (const Tensor* each : {&in.q, &in.k, &in.v, &in.d_o})
      each->copy_from(randn(each->shape(), next_seed(), c_.dtype));
    if (c_.growth != 0) make_growth(in);
    if (c_.zero_vectors) {
      for (const Tensor* each : {&in.q, &in.k}) {
        const int t = c_.packed ? 0 : 2;
        if (each->size(t) == 0) continue;
        const int64_t at = random_.below(each->size(t));
        const Tensor row = each->slice(t, at, at + 1);
        row.copy_from(zeros(row.shape(), c_.dtype));
      }
    }
  }

  // Scores change along the keys from about 0 to the growth asked for, by the first element of every row.
  void make_growth(const CaseInputs& in) {
    const int t = c_.packed ? 0 : 2, d = c_.packed ? 2 : 3;
    const double scale = 1 / std::sqrt(static_cast<double>(c_.Dk));
    const double magnitude = std::sqrt(std::abs(c_.growth) / scale);
    const Tensor q = in.q.slice(d, 0, 1), k = in.k.slice(d, 0, 1);
    q.copy_from(full(q.shape(), magnitude, c_.dtype));
    for (int64_t j = 0; j < k.size(t); ++j) {
      const Tensor one = k.slice(t, j, j + 1);
      const double share = static_cast<double>(j + 1) / static_cast<double>(k.size(t));
      one.copy_from(full(one.shape(), std::copysign(magnitude * share, c_.growth), c_.dtype));
    }
  }

  Tensor per_sequence(int64_t low, int64_t high) {
    std::vector<int32_t> numbers(c_.B);
    for (auto& n : numbers) n = static_cast<int32_t>(low + random_.below(high - low + 1));
    return list(numbers);
  }

  // Some rows drop everything, some keep everything.
  Tensor dense_mask(double share) {
    const std::array<Shape, 4> shapes{Shape{c_.B, c_.H, c_.Tq, c_.Tk}, Shape{c_.B, 1, 1, c_.Tk}, Shape{c_.Tq, c_.Tk},
                                      Shape{1, c_.H, c_.Tq, 1}};
    const Shape shape = shapes[random_.below(4)];
    Tensor out = empty(shape, random_.below(2) == 0 ? DType::u8 : DType::boolean);
    auto* bytes = static_cast<uint8_t*>(out.view().data);
    const int64_t width = shape[shape.rank() - 1], count = shape.count();
    for (int64_t begin = 0; begin < count; begin += width) {
      const int64_t kind = random_.below(8);
      for (int64_t n = 0; n < width; ++n) {
        bytes[begin + n] = kind == 0 ? 0 : kind == 1 ? 1 : random_.uniform() < share;
      }
    }
    return out;
  }

  // Of half the cases each document lies in one piece.
  Tensor documents_of(int64_t length) {
    Tensor out = empty({c_.B, length}, DType::i32);
    const bool pieces = random_.below(2) == 0;
    for (int64_t b = 0; b < c_.B; ++b) {
      int32_t id = static_cast<int32_t>(random_.below(3)) - 1;
      for (int64_t t = 0; t < length; ++t) {
        if (random_.below(12) == 0) id = pieces ? id + 1 : static_cast<int32_t>(random_.below(4)) - 1;
        out.data<int32_t>()[b * length + t] = id;
      }
    }
    return out;
  }

  // Field by field, without mask.h: the reference reads these fields, and must not owe them to what is tested.
  void make_masks(Mask& mask) {
    const auto has = [&](CaseMask bit) { return (c_.masks & bit) != 0; };
    if (has(kMaskKeep)) mask.dense.push_back({dense_mask(0.7), true});
    if (has(kMaskDrop)) mask.dense.push_back({dense_mask(0.2), false});
    if (has(kMaskLengths)) mask.lengths.push_back(per_sequence(0, c_.Tk));
    mask.causal = has(kMaskCausal);
    if (has(kMaskWindow)) {
      const int64_t reach = std::max<int64_t>(c_.Tk, 1);
      mask.ahead = random_.below(reach / 2 + 2) - 1;
      mask.behind = random_.below(reach + 1) - 1;
    }
    if (has(kMaskPrefix)) {
      if (random_.below(2) == 0)
        mask.prefix = random_.below(c_.Tk + 1);
      else
        mask.prefixes = per_sequence(0, c_.Tk);
    }
    if (has(kMaskDocuments) || has(kMaskQueryDocuments)) mask.key_documents = documents_of(c_.Tk);
    if (has(kMaskQueryDocuments)) mask.query_documents = documents_of(c_.Tq);
    if (has(kMaskOffset)) mask.offset = random_.below(c_.Tk + 8) - 4;
    if (has(kMaskOffsets)) mask.offsets = per_sequence(-4, c_.Tk + 3);
  }

  Tensor dense_bias() {
    Shape shape{c_.B, c_.H, c_.Tq, c_.Tk};
    if (c_.bias == CaseBias::per_head) shape = {c_.H, 1, c_.Tk};
    if (c_.bias == CaseBias::per_key) shape = {c_.Tk};
    if (c_.bias == CaseBias::per_query) shape = {c_.B, 1, c_.Tq, 1};
    Tensor out = randn(shape, next_seed(), c_.bias == CaseBias::half ? DType::bf16 : DType::f32);
    if (c_.bias == CaseBias::drops) {
      for (int64_t n = 0; n < out.count(); ++n) {
        if (random_.below(4) == 0) out.data<float>()[n] = -std::numeric_limits<float>::infinity();
      }
    }
    return out;
  }

  void make_bias(std::vector<Bias>& bias) {
    using enum CaseBias;
    if (c_.bias == none) return;
    const bool by_distance = c_.bias == alibi || c_.bias == t5 || c_.bias == t5_one_way;
    if (!by_distance) bias.push_back(DenseBias{dense_bias()});
    if (c_.bias == alibi || c_.bias == dense_alibi) {
      Tensor slopes = empty({c_.H});
      for (int64_t h = 0; h < c_.H; ++h) slopes.data<float>()[h] = std::exp2(-8.0F * static_cast<float>(h + 1) / c_.H);
      bias.push_back(AlibiBias{slopes});
    }
    if (c_.bias == t5 || c_.bias == dense_t5) bias.push_back(T5Bias{.table = randn({32, c_.H}, next_seed())});
    if (c_.bias == t5_one_way) {
      bias.push_back(T5Bias{.table = randn({8, c_.H}, next_seed()), .bidirectional = false, .max_distance = 20});
    }
  }

  void make_similarity(Similarity& similarity) {
    using enum CaseSimilarity;
    if (c_.similarity == dot_scaled) similarity = DotSimilarity{.scale = 0.3F};
    if (c_.similarity == cosine) similarity = CosineSimilarity{.tau = 7, .taus = {}};
    if (c_.similarity == cosine_per_head) similarity = CosineSimilarity{.taus = scaled(randn({c_.H}, next_seed()), 5)};
    if (c_.similarity == euclidean) similarity = EuclideanSimilarity{.scale = 0.1F};
  }

  const AttentionCase& c_;
  Random random_;
  std::vector<int32_t> q_ends_{0}, k_ends_{0};
};

}  // namespace

CaseInputs make_inputs(const AttentionCase& c) { return Maker(c).make(); }

}  // namespace mh
