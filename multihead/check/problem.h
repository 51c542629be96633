// A call of attention unrolled: its sequences, positions, kept pairs and biases, read pair by pair from the public
// types.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/ops/attention/attention.h"

namespace mh::reference {

// The elements in logical order, whatever the strides and the type.
template <class Real>
std::vector<Real> values(const Tensor& tensor);
// Those numbers as a contiguous tensor of the type.
template <class Real>
Tensor to_tensor(const std::vector<Real>& numbers, const Shape& shape, DType dtype);

// A tensor broadcastable to (B, H, Tq, Tk).
struct Broadcast {
  explicit Broadcast(const Tensor& tensor);
  int64_t index(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
  }
  std::vector<double> numbers;
  int64_t stride[4] = {};
};

// One bias of the call; `index` says which of its numbers a pair reads.
struct BiasPiece {
  enum class Kind { dense, alibi, t5 } kind;
  Broadcast numbers;
  bool bidirectional = true;
  int64_t buckets = 0, max_distance = 0;
};

struct Span {
  int64_t q_begin = 0, q_len = 0, k_begin = 0, k_len = 0;
  int64_t keys = 0;      // what lengths leave of k_len: the others are no keys at all
  int64_t position = 0;  // of query 0
};

// The T5 bucket of a key `distance` = j - position away.
int64_t t5_bucket(int64_t distance, bool bidirectional, int64_t buckets, int64_t max_distance);

// The 16 bits of an element under dropout: Philox4x32-7, key = seed, counter = (b, h, i, j / 8), 16 bits an element.
uint32_t dropout_bits(uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j);

class Problem {
 public:
  Problem(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

  int64_t B = 0, H = 0, Hkv = 0, Dk = 0, Dv = 0;
  int64_t Tq = 0, Tk = 0;  // packed: of the longest sequence
  bool packed = false;
  std::vector<Span> spans;

  // Numbers of rows of width D in q, of key rows, and of entries in lse.
  int64_t q_row(int64_t b, int64_t h, int64_t i) const;
  int64_t k_row(int64_t b, int64_t hkv, int64_t j) const;
  int64_t lse_index(int64_t b, int64_t h, int64_t i) const;
  int64_t key_head(int64_t h) const { return h / (H / Hkv); }

  int64_t position(int64_t b, int64_t i) const { return spans[b].position + i; }
  // What the mask says of the pair; a bias of -inf can still drop it.
  bool keeps(int64_t b, int64_t h, int64_t i, int64_t j) const;
  // Sum of all biases; -inf where any of them is.
  double bias(int64_t b, int64_t h, int64_t i, int64_t j) const;
  int64_t bias_index(const BiasPiece& piece, int64_t b, int64_t h, int64_t i, int64_t j) const;
  // The derivative of the bias by that number.
  double bias_slope(const BiasPiece& piece, int64_t b, int64_t i, int64_t j) const;
  // 0, or the inverse share of kept elements.
  double dropout_factor(int64_t b, int64_t h, int64_t i, int64_t j) const;

  double scale(int64_t h) const { return scales_.size() == 1 ? scales_[0] : scales_[h]; }
  const AttentionOptions& options() const { return options_; }
  const std::vector<BiasPiece>& biases() const { return biases_; }
  Shape o_shape() const, lse_shape() const;

 private:
  struct DenseMask {
    Broadcast where;
    bool keep;
  };
  AttentionOptions options_;
  int64_t q_total_ = 0, k_total_ = 0;
  std::vector<double> scales_;
  std::vector<DenseMask> dense_;
  std::vector<std::vector<double>> lengths_;
  std::vector<double> prefixes_, query_documents_, key_documents_;
  int64_t query_document_stride_ = 0, key_document_stride_ = 0, key_document_width_ = 0;
  std::vector<BiasPiece> biases_;
  uint32_t threshold_ = 0;
};

}  // namespace mh::reference
