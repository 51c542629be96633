// What a pair (row i, key j) means: is it kept, its score, its dropout. Written once for host and device.
#pragma once

#include <cmath>

#include "multihead/kernels/cuda/interval.h"

namespace mh::kernels::cuda {

struct Words {
  uint32_t word[4];
};

// Philox4x32 with 7 rounds.
MH_BOTH inline Words philox(uint64_t seed, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 7; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The 16 bits of an element: the counter is (b, h, i, j / 8), element j takes bits 16 · (j % 8) of its 128.
MH_BOTH inline uint32_t dropout_bits(uint64_t seed, int b, int h, int i, int j) {
  const Words words = philox(seed, b, h, i, j / 8);
  return words.word[j % 8 / 2] >> (j % 2 * 16) & 0xFFFFu;
}

// 0, or the inverse of the share that is kept.
MH_BOTH inline float dropout_factor(const Options& options, int b, int h, int i, int j) {
  if (options.dropout_threshold == 0) return 1;
  if (options.dropout_threshold >= 65536) return 0;
  if (dropout_bits(options.dropout_seed, b, h, i, j) < options.dropout_threshold) return 0;
  return 65536.0f / (65536.0f - static_cast<float>(options.dropout_threshold));
}

// What the masks say; a score of -inf still drops the pair.
MH_BOTH inline bool keeps(const Options& options, const Interval& interval, int b, int h, int i, int j) {
  if (!interval.keeps(i, j)) return false;
  if (options.q_documents) {
    const auto* rows = static_cast<const int*>(options.q_documents.data);
    const auto* keys = static_cast<const int*>(options.k_documents.data);
    if (rows[b * options.q_documents.stride[0] + i * options.q_documents.stride[1]] !=
        keys[b * options.k_documents.stride[0] + j * options.k_documents.stride[1]])
      return false;
  }
  for (int n = 0; n < options.dense_count; ++n) {
    const Dense& mask = options.dense[n];
    if ((static_cast<const uint8_t*>(mask.where.data)[mask.where.at(b, h, i, j)] != 0) != mask.keep) return false;
  }
  return true;
}

// The bias by distance of position - j = d.
MH_BOTH inline float relative_bias(const Options& options, int h, int d) {
  if (options.slopes) return -options.slopes[h] * static_cast<float>(d < 0 ? -d : d);
  if (!options.relative) return 0;
  int64_t n = d - options.relative_min;
  if (n < 0) n = 0;
  if (n >= options.relative_count) n = options.relative_count - 1;
  return options.relative[h * options.relative_count + n];
}

// What gradients pass through the cap: 1 / cosh², which keeps its digits where 1 - tanh² would lose them.
MH_BOTH inline float cap_slope(float cap, float s) {
  if (!(cap > 0)) return 1;
  const float steep = coshf(s / cap);
  return 1 / (steep * steep);
}

}  // namespace mh::kernels::cuda
