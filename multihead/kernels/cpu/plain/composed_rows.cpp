// Widens rows, and computes the scores of a few rows of all heads.
#include "multihead/kernels/cpu/plain/composed_rows.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/parallel.h"
#include "multihead/base/random.h"

namespace mh::kernels::plain {
namespace {

// Keys that stay in L1 while the width is summed.
constexpr int64_t kKeyBlock = 1024;
constexpr float kShortest = 0x1p-60f;  // a vector below counts as zero for cosine

float square(const float* x, int64_t width) {
  float sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += x[d] * x[d];
  return sum;
}

// Scales the row to length 1 and returns its length; 0, and a row of 0, where it is too short.
float make_unit(float* x, int64_t width) {
  const float length = std::sqrt(square(x, width));
  if (length < kShortest) {
    std::fill(x, x + width, 0.0f);
    return 0;
  }
  for (int64_t d = 0; d < width; ++d) x[d] /= length;
  return length;
}

}  // namespace

void widen(const View& from, int64_t offset, int64_t count, float* to) {
  if (from.dtype == DType::i8) {
    for (int64_t n = 0; n < count; ++n) to[n] = static_cast<float>(from.as<int8_t>()[offset + n]);
    return;
  }
  visit_float("attention", from.dtype, [&]<class T>() {
    const T* x = from.as<T>() + offset;
    for (int64_t n = 0; n < count; ++n) to[n] = static_cast<float>(x[n]);
  });
}

void narrow(const float* from, int64_t count, const View& to, int64_t offset) {
  visit_float("attention", to.dtype, [&]<class T>() {
    T* y = to.as<T>() + offset;
    for (int64_t n = 0; n < count; ++n) y[n] = static_cast<T>(from[n]);
  });
}

ComposedRows::ComposedRows(const View& q, const KeyValues& kv, const Scores& scores, const ScoreMixing& mixing)
    : q_(q), kv_(kv), s_(scores), mixing_(mixing), heads_(q.size[1]), key_heads_(kv.k.size[1]), width_(q.size[3]) {}

void ComposedRows::load(const View& from, const View& scales, KeyRows& to) const {
  to.width = from.size[3];
  to.rows.resize(static_cast<size_t>(key_heads_ * keys_ * to.width));
  to.turned.resize(to.rows.size());
  parallel_for(key_heads_, [&](int64_t hk) {
    float* rows = to.rows.data() + hk * keys_ * to.width;
    float* turned = to.turned.data() + hk * keys_ * to.width;
    for (int64_t j = 0; j < keys_; ++j) {
      int64_t entry = sequence_->batch, at = sequence_->k_begin + j;
      if (kv_.pages) {
        entry = *kv_.pages.at<int32_t>(b_, j / from.size[2]);
        at = j % from.size[2];
      }
      float* row = rows + j * to.width;
      widen(from, entry * from.stride[0] + hk * from.stride[1] + at * from.stride[2], to.width, row);
      if (scales) {
        const float scale = *scales.at<float>(entry, hk, at);
        for (int64_t d = 0; d < to.width; ++d) row[d] *= scale;
      }
    }
    for (int64_t j = 0; j < keys_; ++j) {
      for (int64_t d = 0; d < to.width; ++d) turned[d * keys_ + j] = rows[j * to.width + d];
    }
  });
}

void ComposedRows::normalise_keys() {
  key_lengths_.resize(static_cast<size_t>(key_heads_ * keys_));
  parallel_for(key_heads_, [&](int64_t hk) {
    for (int64_t j = 0; j < keys_; ++j) {
      float* row = k_.rows.data() + (hk * keys_ + j) * width_;
      float& length = key_lengths_[hk * keys_ + j];
      if (s_.similarity == Similarity::euclidean) {
        length = square(row, width_);
        continue;
      }
      length = make_unit(row, width_);
      for (int64_t d = 0; d < width_; ++d) k_.turned[(hk * width_ + d) * keys_ + j] = row[d];
    }
  });
}

void ComposedRows::begin(int64_t b, const Sequence& sequence, bool with_values) {
  b_ = b;
  sequence_ = &sequence;
  keys_ = sequence.k_len;
  load(kv_.k, kv_.k_scale, k_);
  if (s_.similarity != Similarity::dot) normalise_keys();
  if (with_values) load(kv_.v, kv_.v_scale, v_);
}

void ComposedRows::compute(int64_t first, int64_t count) {
  first_ = first;
  count_ = count;
  queries_.resize(static_cast<size_t>(heads_ * count * width_));
  query_lengths_.resize(static_cast<size_t>(heads_ * count));
  capped_.resize(static_cast<size_t>(heads_ * count * keys_));
  slope_.resize(s_.cap > 0 ? capped_.size() : 0);
  scores_.resize(capped_.size());
  parallel_for(heads_, [&](int64_t h) { compute_head(h); });
  parallel_for(count, [&](int64_t r) { mix_row(r); });
  parallel_for(heads_, [&](int64_t h) {
    for (int64_t r = 0; r < count_; ++r) add_bias_and_mask(h, r);
  });
}

void ComposedRows::compute_head(int64_t h) {
  const float* turned = k_.turned.data() + key_head(h) * width_ * keys_;
  for (int64_t r = 0; r < count_; ++r) {
    float* q = queries_.data() + (h * count_ + r) * width_;
    const int64_t row = sequence_->q_begin + first_ + r;
    widen(q_, sequence_->batch * q_.stride[0] + h * q_.stride[1] + row * q_.stride[2], width_, q);
    float& length = query_lengths_[h * count_ + r];
    length = s_.similarity == Similarity::cosine ? make_unit(q, width_) : square(q, width_);

    float* s = capped_.data() + (h * count_ + r) * keys_;
    std::fill(s, s + keys_, 0.0f);
    for (int64_t begin = 0; begin < keys_; begin += kKeyBlock) {
      const int64_t end = std::min(begin + kKeyBlock, keys_);
      for (int64_t d = 0; d < width_; ++d) {
        const float factor = q[d];
        const float* line = turned + d * keys_;
        for (int64_t j = begin; j < end; ++j) s[j] += factor * line[j];
      }
    }
    finish_scores(h, r, s);
  }
}

void ComposedRows::finish_scores(int64_t h, int64_t r, float* s) {
  const float scale = s_.scale[h];
  if (s_.similarity == Similarity::euclidean) {
    const float qq = query_length(h, r);
    const float* kk = key_lengths_.data() + key_head(h) * keys_;
    for (int64_t j = 0; j < keys_; ++j) s[j] = scale * (2 * s[j] - qq - kk[j]);
  } else {
    for (int64_t j = 0; j < keys_; ++j) s[j] *= scale;
  }
  if (s_.cap > 0) {
    float* slope = slope_.data() + (h * count_ + r) * keys_;
    for (int64_t j = 0; j < keys_; ++j) {
      const float share = s[j] / s_.cap, steep = std::cosh(share);
      slope[j] = 1 / (steep * steep);  // 1 - tanh² would lose its digits where the cap saturates
      s[j] = s_.cap * std::tanh(share);
    }
  }
}

void ComposedRows::mix_row(int64_t r) {
  const auto line = [&](std::vector<float>& from, int64_t h) { return from.data() + (h * count_ + r) * keys_; };
  for (int64_t h = 0; h < heads_; ++h) {
    float* out = line(scores_, h);
    if (mixing_.kind == Mixing::none) {
      std::copy_n(line(capped_, h), keys_, out);
      continue;
    }
    std::fill(out, out + keys_, 0.0f);
    if (mixing_.kind == Mixing::heads) {
      for (int64_t g = 0; g < heads_; ++g) {
        const float factor = *mixing_.matrix.at<float>(h, g);
        const float* in = line(capped_, g);
        for (int64_t j = 0; j < keys_; ++j) out[j] += factor * in[j];
      }
    } else {
      const float* in = line(capped_, h);
      for (int64_t l = 0; l < keys_; ++l) {
        const float* row = mixing_.matrix.at<float>(l);
        for (int64_t j = 0; j < keys_; ++j) out[j] += in[l] * row[j * mixing_.matrix.stride[1]];
      }
    }
  }
}

void ComposedRows::add_bias_and_mask(int64_t h, int64_t r) {
  float* s = scores_.data() + (h * count_ + r) * keys_;
  const int64_t i = first_ + r, position = sequence_->position + i;
  if (s_.relative) {
    const float* relative = s_.relative + h * s_.relative_count + position - s_.relative_min;
    for (int64_t j = 0; j < keys_; ++j) s[j] += relative[-j];
  }
  if (s_.bias) {
    visit_float("attention", s_.bias.dtype, [&]<class T>() {
      const T* bias = s_.bias.at<T>(b_, h, i);
      for (int64_t j = 0; j < keys_; ++j) {
        const float value = static_cast<float>(bias[j * s_.bias.stride[3]]);
        s[j] = value == kDropped ? kDropped : s[j] + value;
      }
    });
  }
  const int64_t low = s_.behind == kUnbounded ? 0 : position - s_.behind;
  int64_t high = s_.ahead == kUnbounded ? keys_ - 1 : position + s_.ahead;
  if (s_.has_prefix) high = std::min(high, std::max(position, sequence_->prefix - 1));
  std::fill_n(s, std::clamp<int64_t>(low, 0, keys_), kDropped);
  const int64_t end = std::clamp<int64_t>(high + 1, 0, keys_);
  std::fill(s + end, s + keys_, kDropped);
  if (s_.q_documents) {
    const int32_t own = *s_.q_documents.at<int32_t>(b_, i);
    for (int64_t j = 0; j < keys_; ++j) {
      if (*s_.k_documents.at<int32_t>(b_, j) != own) s[j] = kDropped;
    }
  }
  for (int n = 0; n < s_.dense_count; ++n) {
    const View& where = s_.dense[n].where;
    const uint8_t* line = where.at<uint8_t>(b_, h, i);
    for (int64_t j = 0; j < keys_; ++j) {
      if ((line[j * where.stride[3]] != 0) != s_.dense[n].keep) s[j] = kDropped;
    }
  }
}

void ComposedRows::dropout_factors(int64_t h, int64_t r, float* factors) const {
  const uint32_t threshold = s_.dropout_threshold;
  const float scale = threshold >= 65536 ? 0.0f : 65536.0f / static_cast<float>(65536 - threshold);
  for (int64_t octet = 0; octet * 8 < keys_; ++octet) {
    const auto words =
        philox4x32<7>({static_cast<uint32_t>(b_), static_cast<uint32_t>(h), static_cast<uint32_t>(first_ + r),
                       static_cast<uint32_t>(octet)},
                      {static_cast<uint32_t>(s_.dropout_seed), static_cast<uint32_t>(s_.dropout_seed >> 32)});
    for (int64_t e = 0; e < 8 && octet * 8 + e < keys_; ++e) {
      const uint32_t bits = words[e / 2] >> (e % 2 * 16) & 0xffff;
      factors[octet * 8 + e] = bits >= threshold ? scale : 0.0f;
    }
  }
}

}  // namespace mh::kernels::plain
