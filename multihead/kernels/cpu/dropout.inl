// Philox4x32 with 7 rounds, one counter per lane: the dropout mask of 8 keys at a time.

using U = hn::ScalableTag<uint32_t>;
using UV = hn::Vec<U>;

HWY_INLINE void wide_product(UV a, uint32_t by, UV& high, UV& low) {
  const U u32;
  const hn::ScalableTag<uint64_t> u64;
  const UV factor = hn::Set(u32, by);
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(u32, hn::ShiftRight<32>(hn::BitCast(u64, a))), factor);
  const auto upper = hn::Set(u64, 0xffffffff00000000ull);
  high = hn::BitCast(u32, hn::Or(hn::ShiftRight<32>(even), hn::And(odd, upper)));
  low = hn::BitCast(u32, hn::Or(hn::AndNot(upper, even), hn::ShiftLeft<32>(odd)));
}

// words[e / 2] holds the 16 bits of key 8 · octet + e: the low half for even e.
HWY_INLINE void dropout_words(uint64_t seed, int64_t b, int64_t h, UV row, int64_t octet, UV (&words)[4]) {
  const U u32;
  UV c0 = hn::Set(u32, static_cast<uint32_t>(b)), c1 = hn::Set(u32, static_cast<uint32_t>(h)), c2 = row,
     c3 = hn::Set(u32, static_cast<uint32_t>(octet));
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 7
  for (int round = 0; round < 7; ++round) {
    UV high0, low0, high1, low1;
    wide_product(c0, 0xD2511F53u, high0, low0);
    wide_product(c2, 0xCD9E8D57u, high1, low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(u32, k0));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(u32, k1));
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

inline float dropout_scale(uint32_t threshold) { return threshold >= 65536 ? 0.0f : 65536.0f / (65536.0f - static_cast<float>(threshold)); }

// factors[(j - begin) · width + lane] = 0 where the pair is dropped, else the scale. begin is a multiple of 8.
inline void dropout_factors(const Scores& scores, const QueryBlock& q, KeySpan keys, float* factors) {
  const U u32;
  const int64_t width = q.width();
  const V scale = hn::Set(f32, dropout_scale(scores.dropout_threshold));
  const UV threshold = hn::Set(u32, scores.dropout_threshold), half = hn::Set(u32, 0xffff);
  for (int64_t octet = keys.begin / 8; octet * 8 < keys.end; ++octet) {
    for (int n = 0; n < q.vectors; ++n) {
      const UV row = hn::Iota(u32, static_cast<uint32_t>(q.first) + static_cast<uint32_t>(n * kLanes));
      UV words[4];
      dropout_words(scores.dropout_seed, q.sequence, q.head, row, octet, words);
      for (int e = 0; e < 8 && octet * 8 + e < keys.end; ++e) {
        const UV bits = e % 2 ? hn::ShiftRight<16>(words[e / 2]) : hn::And(words[e / 2], half);
        const V factor = hn::IfThenZeroElse(hn::RebindMask(f32, hn::Lt(bits, threshold)), scale);
        hn::StoreU(factor, f32, factors + (octet * 8 + e - keys.begin) * width + n * kLanes);
      }
    }
  }
}
