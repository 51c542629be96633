// Reading a call of attention pair by pair: slow, plain, and apart from the ops and kernels it judges.
#include "multihead/check/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mh::reference {
namespace {

double element(const View& view, int64_t offset) {
  switch (view.dtype) {
    case DType::f32: return view.as<float>()[offset];
    case DType::bf16: return static_cast<float>(view.as<bf16>()[offset]);
    case DType::f16: return static_cast<float>(view.as<f16>()[offset]);
    case DType::f64: return view.as<double>()[offset];
    case DType::i8: return view.as<int8_t>()[offset];
    case DType::u8:
    case DType::boolean: return view.as<uint8_t>()[offset];
    case DType::i32: return view.as<int32_t>()[offset];
    case DType::i64: return static_cast<double>(view.as<int64_t>()[offset]);
  }
  return 0;
}

void store(const View& view, int64_t offset, double value) {
  switch (view.dtype) {
    case DType::f32: view.as<float>()[offset] = static_cast<float>(value); return;
    case DType::bf16: view.as<bf16>()[offset] = bf16(static_cast<float>(value)); return;
    case DType::f16: view.as<f16>()[offset] = f16(static_cast<float>(value)); return;
    case DType::f64: view.as<double>()[offset] = value; return;
    case DType::i32: view.as<int32_t>()[offset] = static_cast<int32_t>(value); return;
    default: fail(ErrorKind::internal, "reference: no storing into elements of type {}", name(view.dtype));
  }
}

double default_scale(const std::optional<float>& scale, int64_t width) {
  return scale ? *scale : 1 / std::sqrt(static_cast<double>(width));
}

std::vector<double> scales_of(const Similarity& similarity, int64_t width) {
  if (const auto* dot = std::get_if<DotSimilarity>(&similarity)) return {default_scale(dot->scale, width)};
  if (const auto* far = std::get_if<EuclideanSimilarity>(&similarity)) return {default_scale(far->scale, width)};
  const auto& cosine = std::get<CosineSimilarity>(similarity);
  return cosine.taus ? values<double>(cosine.taus) : std::vector<double>{cosine.tau};
}

BiasPiece piece_of(const Bias& bias) {
  if (const auto* dense = std::get_if<DenseBias>(&bias)) {
    return {.kind = BiasPiece::Kind::dense, .numbers = Broadcast(dense->values)};
  }
  if (const auto* alibi = std::get_if<AlibiBias>(&bias)) {
    return {.kind = BiasPiece::Kind::alibi, .numbers = Broadcast(alibi->slopes)};
  }
  const auto& t5 = std::get<T5Bias>(bias);
  return {.kind = BiasPiece::Kind::t5,
          .numbers = Broadcast(t5.table),
          .bidirectional = t5.bidirectional,
          .buckets = t5.table.size(0),
          .max_distance = t5.max_distance};
}

}  // namespace

template <class Real>
std::vector<Real> values(const Tensor& tensor) {
  const View& view = tensor.view();
  int64_t count = 1;
  for (int axis = 0; axis < view.rank; ++axis) count *= view.size[axis];
  std::vector<Real> out(count);
  int64_t index[kMaxRank] = {};
  int64_t offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    out[n] = static_cast<Real>(element(view, offset));
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      offset += view.stride[axis];
      if (++index[axis] < view.size[axis]) break;
      offset -= view.stride[axis] * view.size[axis];
      index[axis] = 0;
    }
  }
  return out;
}
template std::vector<double> values<double>(const Tensor&);
template std::vector<float> values<float>(const Tensor&);

template <class Real>
Tensor to_tensor(const std::vector<Real>& numbers, const Shape& shape, DType dtype) {
  Tensor out = empty(shape, dtype);
  for (size_t n = 0; n < numbers.size(); ++n) store(out.view(), static_cast<int64_t>(n), numbers[n]);
  return out;
}
template Tensor to_tensor<double>(const std::vector<double>&, const Shape&, DType);
template Tensor to_tensor<float>(const std::vector<float>&, const Shape&, DType);

Broadcast::Broadcast(const Tensor& tensor) : numbers(values<double>(tensor)) {
  int64_t step = 1;
  for (int axis = 3, own = tensor.rank() - 1; own >= 0; --axis, --own) {
    stride[axis] = tensor.size(own) == 1 ? 0 : step;
    step *= tensor.size(own);
  }
}

int64_t t5_bucket(int64_t distance, bool bidirectional, int64_t buckets, int64_t max_distance) {
  int64_t first = 0;
  if (bidirectional) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double share =
      std::log(static_cast<double>(distance) / exact) / std::log(static_cast<double>(max_distance) / exact);
  // Distances that lie on a boundary in exact arithmetic belong to the farther bucket.
  const double far = std::floor(exact + share * (buckets - exact) + 1e-9);
  return first + std::min<int64_t>(static_cast<int64_t>(std::min(far, 1e9)), buckets - 1);
}

uint32_t dropout_bits(uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j) {
  uint32_t c[4] = {static_cast<uint32_t>(b), static_cast<uint32_t>(h), static_cast<uint32_t>(i),
                   static_cast<uint32_t>(j / 8)};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 7; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * c[0], second = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(second >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(second),
                              static_cast<uint32_t>(first >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(first)};
    std::copy(next, next + 4, c);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  const int64_t element = j % 8;
  return (c[element / 2] >> (16 * (element % 2))) & 0xFFFF;
}

Problem::Problem(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options)
    : options_(options) {
  packed = options.packed.has_value();
  Dk = q.size(-1);
  Dv = v.size(-1);
  H = q.size(1);
  Hkv = k.size(1);
  scales_ = scales_of(options.similarity, Dk);
  for (const Tensor& each : options.mask.lengths) lengths_.push_back(values<double>(each));
  if (packed) {
    q_total_ = q.size(0);
    k_total_ = k.size(0);
    const auto cu_q = values<double>(options.packed->cu_seqlens_q), cu_k = values<double>(options.packed->cu_seqlens_k);
    B = static_cast<int64_t>(cu_q.size()) - 1;
    for (int64_t b = 0; b < B; ++b) {
      spans.push_back({.q_begin = static_cast<int64_t>(cu_q[b]),
                       .q_len = static_cast<int64_t>(cu_q[b + 1] - cu_q[b]),
                       .k_begin = static_cast<int64_t>(cu_k[b]),
                       .k_len = static_cast<int64_t>(cu_k[b + 1] - cu_k[b])});
      Tq = std::max(Tq, spans[b].q_len);
      Tk = std::max(Tk, spans[b].k_len);
    }
  } else {
    B = q.size(0);
    Tq = q_total_ = q.size(2);
    Tk = k_total_ = k.size(2);
    spans.assign(B, {.q_len = Tq, .k_len = Tk});
  }

  const Mask& mask = options.mask;
  const std::vector<double> offsets = mask.offsets ? values<double>(mask.offsets) : std::vector<double>{};
  for (int64_t b = 0; b < B; ++b) {
    double keys = static_cast<double>(spans[b].k_len);
    for (const auto& each : lengths_) keys = std::min(keys, each[b]);
    spans[b].keys = static_cast<int64_t>(keys);
    spans[b].position = spans[b].keys - spans[b].q_len;
    if (mask.offset) spans[b].position = *mask.offset;
    if (!offsets.empty()) spans[b].position = static_cast<int64_t>(offsets[b]);
  }
  for (const Mask::Dense& each : mask.dense) dense_.push_back({Broadcast(each.where), each.keep});
  if (mask.prefixes) prefixes_ = values<double>(mask.prefixes);
  if (mask.prefix) prefixes_.assign(B, static_cast<double>(*mask.prefix));
  if (mask.key_documents) {
    key_documents_ = values<double>(mask.key_documents);
    key_document_width_ = mask.key_documents.size(-1);
    key_document_stride_ = mask.key_documents.size(0) == 1 ? 0 : key_document_width_;
  }
  if (mask.query_documents) {
    query_documents_ = values<double>(mask.query_documents);
    query_document_stride_ = mask.query_documents.size(0) == 1 ? 0 : mask.query_documents.size(-1);
  }
  for (const Bias& each : options.bias) biases_.push_back(piece_of(each));
  threshold_ = static_cast<uint32_t>(std::lround(static_cast<double>(options.dropout.p) * 65536));
}

int64_t Problem::q_row(int64_t b, int64_t h, int64_t i) const {
  return packed ? (spans[b].q_begin + i) * H + h : (b * H + h) * Tq + i;
}

int64_t Problem::k_row(int64_t b, int64_t hkv, int64_t j) const {
  return packed ? (spans[b].k_begin + j) * Hkv + hkv : (b * Hkv + hkv) * Tk + j;
}

int64_t Problem::lse_index(int64_t b, int64_t h, int64_t i) const {
  return packed ? h * q_total_ + spans[b].q_begin + i : (b * H + h) * Tq + i;
}

Shape Problem::o_shape() const { return packed ? Shape{q_total_, H, Dv} : Shape{B, H, Tq, Dv}; }

Shape Problem::lse_shape() const { return packed ? Shape{H, q_total_} : Shape{B, H, Tq}; }

bool Problem::keeps(int64_t b, int64_t h, int64_t i, int64_t j) const {
  const Mask& mask = options_.mask;
  const int64_t at = position(b, i);
  for (const auto& each : lengths_) {
    if (j >= each[b]) return false;
  }
  if (mask.causal && j > at) return false;
  if (mask.behind >= 0 && j < at - mask.behind) return false;
  if (mask.ahead >= 0 && j > at + mask.ahead) return false;
  if (!prefixes_.empty() && j > at && j >= prefixes_[b]) return false;
  if (!key_documents_.empty()) {
    const double theirs = key_documents_[b * key_document_stride_ + j];
    if (!query_documents_.empty()) {
      if (query_documents_[b * query_document_stride_ + i] != theirs) return false;
    } else {
      if (at < 0 || at >= key_document_width_) return false;
      if (key_documents_[b * key_document_stride_ + at] != theirs) return false;
    }
  }
  for (const DenseMask& each : dense_) {
    if ((each.where.numbers[each.where.index(b, h, i, j)] != 0) != each.keep) return false;
  }
  return true;
}

int64_t Problem::bias_index(const BiasPiece& piece, int64_t b, int64_t h, int64_t i, int64_t j) const {
  switch (piece.kind) {
    case BiasPiece::Kind::dense: return piece.numbers.index(b, h, i, j);
    case BiasPiece::Kind::alibi: return h;
    case BiasPiece::Kind::t5:
      return t5_bucket(j - position(b, i), piece.bidirectional, piece.buckets, piece.max_distance) * H + h;
  }
  return 0;
}

double Problem::bias_slope(const BiasPiece& piece, int64_t b, int64_t i, int64_t j) const {
  return piece.kind == BiasPiece::Kind::alibi ? -static_cast<double>(std::abs(position(b, i) - j)) : 1.0;
}

double Problem::bias(int64_t b, int64_t h, int64_t i, int64_t j) const {
  double sum = 0;
  bool dropped = false;
  for (const BiasPiece& piece : biases_) {
    const double number = piece.numbers.numbers[bias_index(piece, b, h, i, j)];
    const double added = piece.kind == BiasPiece::Kind::dense ? number : number * bias_slope(piece, b, i, j);
    dropped = dropped || added == -std::numeric_limits<double>::infinity();
    sum += added;
  }
  return dropped ? -std::numeric_limits<double>::infinity() : sum;
}

double Problem::dropout_factor(int64_t b, int64_t h, int64_t i, int64_t j) const {
  if (threshold_ == 0) return 1;
  if (dropout_bits(options_.dropout.seed, b, h, i, j) < threshold_) return 0;
  return 65536.0 / (65536.0 - threshold_);
}

}  // namespace mh::reference
