// The scores of a few rows of all heads: what every composed pass begins with. Internal to ops.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "multihead/kernels/composed_attention.h"

namespace mh::kernels::plain {

inline constexpr float kDropped = -std::numeric_limits<float>::infinity();

// `count` elements from `from` on (last stride 1) as f32, and back.
void widen(const View& from, int64_t offset, int64_t count, float* to);
void narrow(const float* from, int64_t count, const View& to, int64_t offset);

// Widened keys or values of one sequence.
struct KeyRows {
  int64_t width = 0;
  std::vector<float> rows;    // (Hkv, keys, width)
  std::vector<float> turned;  // (Hkv, width, keys)
};

class ComposedRows {
 public:
  ComposedRows(const View& q, const KeyValues& kv, const Scores& scores, const ScoreMixing& mixing);

  // Loads the keys of sequence number b, and its values where `with_values`.
  void begin(int64_t b, const Sequence& sequence, bool with_values);
  // Rows [first, first + count) of that sequence, all heads.
  void compute(int64_t first, int64_t count);

  int64_t keys() const { return keys_; }
  int64_t rows_at_once() const { return composed_rows(heads_, sequence_->q_len, keys_); }
  // s with bias and mask; kDropped where the pair is dropped.
  const float* scores(int64_t h, int64_t r) const { return scores_.data() + (h * count_ + r) * keys_; }
  // s after the cap, before mixing, bias and mask.
  const float* capped(int64_t h, int64_t r) const { return capped_.data() + (h * count_ + r) * keys_; }
  // With a cap: the derivative of capped by s.
  const float* slope(int64_t h, int64_t r) const { return slope_.data() + (h * count_ + r) * keys_; }
  // The widened query; of unit length for cosine.
  const float* query(int64_t h, int64_t r) const { return queries_.data() + (h * count_ + r) * width_; }
  // Length of the query before (cosine; 0 where it counts as zero).
  float query_length(int64_t h, int64_t r) const { return query_lengths_[h * count_ + r]; }
  float key_length(int64_t hk, int64_t j) const { return key_lengths_[hk * keys_ + j]; }
  const KeyRows& key_rows() const { return k_; }
  const KeyRows& value_rows() const { return v_; }
  int64_t key_head(int64_t h) const { return h / (heads_ / key_heads_); }

  // factors[j] = 0 where dropout takes the pair, else its scale. Row r of the current ones.
  void dropout_factors(int64_t h, int64_t r, float* factors) const;
  bool has_dropout() const { return s_.dropout_threshold != 0; }

 private:
  void load(const View& rows, const View& scales, KeyRows& to) const;
  void normalise_keys();
  void compute_head(int64_t h);
  void finish_scores(int64_t h, int64_t r, float* s);
  void mix_row(int64_t r);
  void add_bias_and_mask(int64_t h, int64_t r);

  View q_;
  KeyValues kv_;
  Scores s_;
  ScoreMixing mixing_;
  int64_t heads_, key_heads_, width_;

  const Sequence* sequence_ = nullptr;
  int64_t b_ = 0, keys_ = 0, first_ = 0, count_ = 0;
  KeyRows k_, v_;
  std::vector<float> key_lengths_;  // cosine: lengths; Euclidean: their squares
  std::vector<float> queries_, query_lengths_;
  std::vector<float> capped_, slope_, scores_;
};

}  // namespace mh::kernels::plain
