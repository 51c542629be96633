// The composed backward pass: every step of the forward one, backwards, for a few rows of all heads at a time.
#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/composed_attention.h"
#include "multihead/kernels/cpu/plain/composed_rows.h"
#include "multihead/kernels/cpu/plain/plain.h"

namespace mh::kernels::plain {
namespace {

int64_t offset_of(const View& view, int64_t a, int64_t b, int64_t c) {
  return a * view.stride[0] + b * view.stride[1] + c * view.stride[2];
}

class ComposedBackward {
 public:
  ComposedBackward(const AttentionBackwardArgs& args, const ScoreMixing& mixing, bool wants_dmix)
      : a_(args),
        mixing_(mixing),
        rows_(args.q, args.kv, args.scores, mixing),
        heads_(args.q.size[1]),
        key_heads_(args.kv.k.size[1]),
        Dk_(args.q.size[3]),
        Dv_(args.kv.v.size[3]),
        wants_dmix_(wants_dmix) {
    dsink_.resize(static_cast<size_t>(heads_));
    dscale_.resize(static_cast<size_t>(heads_));
    if (args.drelative) drelative_.resize(static_cast<size_t>(heads_ * args.scores.relative_count));
    if (args.dbias) {
      for (int axis = 0; axis < 4; ++axis) bias_size_[axis] = args.dbias.stride[axis] == 0 ? 1 : args.dbias.size[axis];
      dbias_.resize(static_cast<size_t>(bias_size_[0] * bias_size_[1] * bias_size_[2] * bias_size_[3]));
    }
    if (wants_dmix) dmix_.resize(static_cast<size_t>(mixing.matrix.size[0] * mixing.matrix.size[1]));
  }

  void sequence(int64_t b) {
    sequence_ = &a_.sequences.data[b];
    b_ = b;
    rows_.begin(b, *sequence_, true);
    keys_ = rows_.keys();
    dk_.assign(static_cast<size_t>(key_heads_ * keys_ * Dk_), 0);
    dv_.assign(static_cast<size_t>(key_heads_ * keys_ * Dv_), 0);
    share_.assign(static_cast<size_t>(key_heads_ * keys_), 0);
    const int64_t step = std::max<int64_t>(rows_.rows_at_once(), 1);
    for (int64_t first = 0; first < sequence_->q_len; first += step)
      chunk(first, std::min(step, sequence_->q_len - first));
    parallel_for(key_heads_, [&](int64_t hk) { finish_keys(hk); });
  }

  void write_sums(const View& dmatrix) const {
    for (int64_t h = 0; h < heads_; ++h) {
      if (a_.dsink) a_.dsink[h] = static_cast<float>(dsink_[h]);
      if (a_.dscale) a_.dscale[h] = static_cast<float>(dscale_[h]);
    }
    for (size_t n = 0; n < drelative_.size(); ++n) a_.drelative[n] = static_cast<float>(drelative_[n]);
    const auto& z = bias_size_;
    for (size_t n = 0; n < dbias_.size(); ++n) {
      const int64_t at = static_cast<int64_t>(n), j = at % z[3], i = at / z[3] % z[2], h = at / z[3] / z[2] % z[1];
      *a_.dbias.at<float>(at / z[3] / z[2] / z[1], h, i, j) = static_cast<float>(dbias_[n]);
    }
    for (size_t n = 0; n < dmix_.size(); ++n) {
      const int64_t width = mixing_.matrix.size[1];
      *dmatrix.at<float>(static_cast<int64_t>(n) / width, static_cast<int64_t>(n) % width) =
          static_cast<float>(dmix_[n]);
    }
  }

 private:
  float* line(std::vector<float>& of, int64_t h, int64_t r) { return of.data() + (h * count_ + r) * keys_; }

  void chunk(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
    rows_.compute(first, count);
    weights_.assign(static_cast<size_t>(heads_ * count * keys_), 0);
    ds_.assign(weights_.size(), 0);
    d_o_.resize(static_cast<size_t>(heads_ * count * Dv_));
    live_.assign(weights_.size(), 0);
    parallel_for(heads_, [&](int64_t h) {
      for (int64_t r = 0; r < count_; ++r) through_softmax(h, r);
    });
    parallel_for(key_heads_, [&](int64_t hk) { add_dv(hk); });
    if (a_.dbias) add_dbias();
    if (a_.drelative) parallel_for(heads_, [&](int64_t h) { add_drelative(h); });
    if (wants_dmix_) add_dmix();
    parallel_for(count, [&](int64_t r) { through_mix(r); });
    parallel_for(heads_, [&](int64_t h) {
      for (int64_t r = 0; r < count_; ++r) through_query(h, r);
    });
    parallel_for(key_heads_, [&](int64_t hk) { add_dk(hk); });
  }

  // ds = p · (dp - Δ), and what dropout leaves of p; d_o widened.
  void through_softmax(int64_t h, int64_t r) {
    const int64_t at = sequence_->q_begin + first_ + r, batch = sequence_->batch;
    const float* s = rows_.scores(h, r);
    const bool empty = std::all_of(s, s + keys_, [](float x) { return x == kDropped; });
    float* d_o = d_o_.data() + (h * count_ + r) * Dv_;
    std::vector<float> o(static_cast<size_t>(Dv_));
    widen(a_.d_o, offset_of(a_.d_o, batch, h, at), Dv_, d_o);
    widen(a_.o, offset_of(a_.o, batch, h, at), Dv_, o.data());
    float delta = 0;
    for (int64_t d = 0; d < Dv_ && !empty; ++d) delta += d_o[d] * o[d];
    if (a_.d_lse) delta -= *a_.d_lse.at<float>(batch, h, at);
    const float lse = *a_.lse.at<float>(batch, h, at);
    if (a_.scores.sink && lse != kDropped) dsink_[h] -= std::exp(static_cast<double>(a_.scores.sink[h]) - lse) * delta;
    if (empty) return;

    std::vector<float> dp(static_cast<size_t>(keys_)), factors(static_cast<size_t>(keys_), 1.0f);
    const float* turned = rows_.value_rows().turned.data() + rows_.key_head(h) * Dv_ * keys_;
    for (int64_t d = 0; d < Dv_; ++d) {
      for (int64_t j = 0; j < keys_; ++j) dp[j] += d_o[d] * turned[d * keys_ + j];
    }
    if (rows_.has_dropout()) rows_.dropout_factors(h, r, factors.data());
    float *weights = line(weights_, h, r), *ds = line(ds_, h, r);
    for (int64_t j = 0; j < keys_; ++j) {
      if (s[j] == kDropped) continue;
      const float p = std::exp(s[j] - lse);
      weights[j] = p * factors[j];
      ds[j] = p * ((factors[j] == 0 ? 0.0f : dp[j] * factors[j]) - delta);
    }
  }

  template <class F>
  void for_each_row_of(int64_t hk, F&& f) {
    const int64_t group = heads_ / key_heads_;
    for (int64_t h = hk * group; h < (hk + 1) * group; ++h) {
      for (int64_t r = 0; r < count_; ++r) f(h, r);
    }
  }

  void add_dv(int64_t hk) {
    for_each_row_of(hk, [&](int64_t h, int64_t r) {
      const float *s = rows_.scores(h, r), *weights = line(weights_, h, r), *d_o = d_o_.data() + (h * count_ + r) * Dv_;
      for (int64_t j = 0; j < keys_; ++j) {
        if (s[j] == kDropped) continue;
        float* dv = dv_.data() + (hk * keys_ + j) * Dv_;
        for (int64_t d = 0; d < Dv_; ++d) dv[d] += weights[j] * d_o[d];
      }
    });
  }

  void add_dbias() {
    const auto& z = bias_size_;
    for (int64_t h = 0; h < heads_; ++h) {
      for (int64_t r = 0; r < count_; ++r) {
        const int64_t b = z[0] == 1 ? 0 : b_, head = z[1] == 1 ? 0 : h, i = z[2] == 1 ? 0 : first_ + r;
        double* out = dbias_.data() + ((b * z[1] + head) * z[2] + i) * z[3];
        const float *s = rows_.scores(h, r), *ds = line(ds_, h, r);
        for (int64_t j = 0; j < keys_; ++j) {
          if (s[j] != kDropped) out[z[3] == 1 ? 0 : j] += ds[j];
        }
      }
    }
  }

  void add_drelative(int64_t h) {
    for (int64_t r = 0; r < count_; ++r) {
      const float *s = rows_.scores(h, r), *ds = line(ds_, h, r);
      double* out =
          drelative_.data() + h * a_.scores.relative_count + sequence_->position + first_ + r - a_.scores.relative_min;
      for (int64_t j = 0; j < keys_; ++j) {
        if (s[j] != kDropped) out[-j] += ds[j];
      }
    }
  }

  void add_dmix() {
    const int64_t width = mixing_.matrix.size[1];
    if (mixing_.kind == Mixing::heads) {
      parallel_for(heads_, [&](int64_t h) {
        for (int64_t g = 0; g < heads_; ++g) {
          for (int64_t r = 0; r < count_; ++r) {
            const float *s = rows_.scores(h, r), *ds = line(ds_, h, r), *capped = rows_.capped(g, r);
            for (int64_t j = 0; j < keys_; ++j) {
              if (s[j] != kDropped) dmix_[h * width + g] += static_cast<double>(ds[j]) * capped[j];
            }
          }
        }
      });
      return;
    }
    parallel_for(keys_, [&](int64_t l) {
      for (int64_t row = 0; row < heads_ * count_; ++row) {
        const float *s = rows_.scores(row / count_, row % count_), *ds = line(ds_, row / count_, row % count_);
        const double factor = rows_.capped(row / count_, row % count_)[l];
        for (int64_t j = 0; j < keys_; ++j) {
          if (s[j] != kDropped) dmix_[l * width + j] += factor * ds[j];
        }
      }
    });
  }

  // From gradients of the mixed scores in ds_ to those of s before the cap, in weights_; live_ marks pairs that count.
  void through_mix(int64_t r) {
    for (int64_t h = 0; h < heads_; ++h) {
      float* out = line(weights_, h, r);
      uint8_t* live = live_.data() + (h * count_ + r) * keys_;
      unmix(h, r, out, live);
      const float* slope = a_.scores.cap > 0 ? rows_.slope(h, r) : nullptr;
      for (int64_t j = 0; slope && j < keys_; ++j) out[j] *= slope[j];
    }
  }

  void unmix(int64_t h, int64_t r, float* out, uint8_t* live) {
    const float *s = rows_.scores(h, r), *ds = line(ds_, h, r);
    if (mixing_.kind == Mixing::none) {
      for (int64_t j = 0; j < keys_; ++j) live[j] = s[j] != kDropped;
      std::copy_n(ds, keys_, out);
    } else if (mixing_.kind == Mixing::heads) {
      std::fill(out, out + keys_, 0.0f);
      for (int64_t g = 0; g < heads_; ++g) {
        const float factor = *mixing_.matrix.at<float>(g, h);
        const float *scores = rows_.scores(g, r), *from = line(ds_, g, r);
        for (int64_t j = 0; j < keys_; ++j) {
          if (scores[j] == kDropped) continue;
          live[j] = 1;
          out[j] += factor * from[j];
        }
      }
    } else {
      const bool any = std::any_of(s, s + keys_, [](float x) { return x != kDropped; });
      std::fill(live, live + keys_, static_cast<uint8_t>(any));
      for (int64_t l = 0; l < keys_; ++l) {
        float sum = 0;
        for (int64_t j = 0; j < keys_; ++j) {
          if (s[j] != kDropped) sum += ds[j] * *mixing_.matrix.at<float>(l, j);
        }
        out[l] = sum;
      }
    }
  }

  void through_query(int64_t h, int64_t r) {
    const Similarity similarity = a_.scores.similarity;
    const float* grad = line(weights_, h, r);
    const uint8_t* live = live_.data() + (h * count_ + r) * keys_;
    const float* k = rows_.key_rows().rows.data() + rows_.key_head(h) * keys_ * Dk_;
    const float* q = rows_.query(h, r);
    std::vector<float> dq(static_cast<size_t>(Dk_));
    float total = 0;
    bool any = false;
    for (int64_t j = 0; j < keys_; ++j) {
      if (!live[j]) continue;
      any = true;
      total += grad[j];
      for (int64_t d = 0; d < Dk_; ++d) dq[d] += grad[j] * k[j * Dk_ + d];
    }
    float along = 0;
    for (int64_t d = 0; d < Dk_ && any; ++d) along += q[d] * dq[d];
    const float scale = a_.scores.scale[h];
    for (int64_t d = 0; d < Dk_ && any; ++d) {
      if (similarity == Similarity::dot) {
        dq[d] *= scale;
      } else if (similarity == Similarity::euclidean) {
        dq[d] = 2 * scale * (dq[d] - total * q[d]);
      } else {
        const float length = rows_.query_length(h, r);
        dq[d] = length == 0 ? 0 : scale * (dq[d] - along * q[d]) / length;
      }
    }
    if (similarity == Similarity::cosine && any) dscale_[h] += along;
    if (a_.dq) narrow(dq.data(), Dk_, a_.dq, offset_of(a_.dq, sequence_->batch, h, sequence_->q_begin + first_ + r));
  }

  // Gradients of the keys as they enter the product; share_ is Σ of the factors, for Euclidean similarity.
  void add_dk(int64_t hk) {
    for_each_row_of(hk, [&](int64_t h, int64_t r) {
      const float* grad = line(weights_, h, r);
      const uint8_t* live = live_.data() + (h * count_ + r) * keys_;
      const float* q = rows_.query(h, r);
      for (int64_t j = 0; j < keys_; ++j) {
        if (!live[j]) continue;
        const float factor = grad[j] * a_.scores.scale[h];
        share_[hk * keys_ + j] += factor;
        float* dk = dk_.data() + (hk * keys_ + j) * Dk_;
        for (int64_t d = 0; d < Dk_; ++d) dk[d] += factor * q[d];
      }
    });
  }

  void finish_keys(int64_t hk) {
    for (int64_t j = 0; j < keys_; ++j) {
      float* dk = dk_.data() + (hk * keys_ + j) * Dk_;
      const float* k = rows_.key_rows().rows.data() + (hk * keys_ + j) * Dk_;
      const float share = share_[hk * keys_ + j];
      if (a_.scores.similarity == Similarity::euclidean) {
        for (int64_t d = 0; d < Dk_; ++d) dk[d] = 2 * (dk[d] - (share == 0 ? 0.0f : share * k[d]));
      } else if (a_.scores.similarity == Similarity::cosine) {
        const float length = rows_.key_length(hk, j);
        float along = 0;
        for (int64_t d = 0; d < Dk_; ++d) along += dk[d] == 0 ? 0 : dk[d] * k[d];
        for (int64_t d = 0; d < Dk_; ++d) {
          const float across = dk[d] - (along == 0 ? 0.0f : along * k[d]);
          dk[d] = length == 0 || across == 0 ? 0 : across / length;
        }
      }
      const int64_t at = sequence_->k_begin + j;
      if (a_.dk) narrow(dk, Dk_, a_.dk, offset_of(a_.dk, sequence_->batch, hk, at));
      if (a_.dv) narrow(dv_.data() + (hk * keys_ + j) * Dv_, Dv_, a_.dv, offset_of(a_.dv, sequence_->batch, hk, at));
    }
  }

  const AttentionBackwardArgs& a_;
  const ScoreMixing& mixing_;
  ComposedRows rows_;
  int64_t heads_, key_heads_, Dk_, Dv_;
  bool wants_dmix_;
  const Sequence* sequence_ = nullptr;
  int64_t b_ = 0, keys_ = 0, first_ = 0, count_ = 0;
  int64_t bias_size_[4] = {};
  std::vector<float> weights_, ds_, d_o_, dk_, dv_, share_;
  std::vector<uint8_t> live_;
  std::vector<double> dsink_, dscale_, drelative_, dbias_, dmix_;
};

}  // namespace

void composed_backward(const ComposedBackwardArgs& args, Queue&) {
  ComposedBackward pass(args.call, args.mixing, static_cast<bool>(args.dmatrix));
  for (int64_t b = 0; b < args.call.sequences.count; ++b) pass.sequence(b);
  pass.write_sums(args.dmatrix);
}

}  // namespace mh::kernels::plain
