// The multiply-add and plain-read loops of a rung: what its registers and its loads can do at most.
// Included inside the unnamed namespace of a rung, after hwy/highway.h.
#pragma once

// Enough independent chains to hide a latency of 4 cycles on two units, few enough to stay in registers.
#if HWY_TARGET <= HWY_AVX3 || defined(__aarch64__)
inline constexpr int kFmaChains = 24;
#else
inline constexpr int kFmaChains = 12;
#endif

// Values stay finite and away from zero: registers full of zeros let some cores clock higher than real data does.
void fma_loop(const LimitArgs& args) {
  const HWY_FULL(float) lanes;
  using Vector = decltype(hwy::HWY_NAMESPACE::Zero(lanes));
  const Vector shrink = hwy::HWY_NAMESPACE::Set(lanes, 0.4371f);
  const Vector raise = hwy::HWY_NAMESPACE::Set(lanes, 0.7113f);
  Vector chain[kFmaChains];
#pragma GCC unroll 24
  for (int c = 0; c < kFmaChains; ++c)
    chain[c] = hwy::HWY_NAMESPACE::Set(lanes, 1.0f + 0.03125f * static_cast<float>(c));
  for (int64_t round = 0; round < args.rounds; ++round) {
#pragma GCC unroll 24
    for (int c = 0; c < kFmaChains; ++c) chain[c] = hwy::HWY_NAMESPACE::MulAdd(chain[c], shrink, raise);
  }
#pragma GCC unroll 24
  for (int c = 1; c < kFmaChains; ++c) chain[0] = hwy::HWY_NAMESPACE::Add(chain[0], chain[c]);
  // Without a reader the compiler would drop the loop.
  volatile float reader = hwy::HWY_NAMESPACE::GetLane(chain[0]);
  static_cast<void>(reader);
  *args.work =
      static_cast<double>(args.rounds) * kFmaChains * 2.0 * static_cast<double>(hwy::HWY_NAMESPACE::Lanes(lanes));
}

void read_loop(const LimitArgs& args) {
  const HWY_FULL(uint32_t) lanes;
  const int64_t step = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(lanes));
  const auto* at = static_cast<const uint32_t*>(args.data);
  const int64_t count = args.bytes / 4 / (8 * step) * (8 * step);
  auto sum0 = hwy::HWY_NAMESPACE::Zero(lanes), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (int64_t i = 0; i < count; i += 8 * step) {
    const auto load = [&](int n) { return hwy::HWY_NAMESPACE::LoadU(lanes, at + i + n * step); };
    sum0 = hwy::HWY_NAMESPACE::Xor(sum0, hwy::HWY_NAMESPACE::Xor(load(0), load(1)));
    sum1 = hwy::HWY_NAMESPACE::Xor(sum1, hwy::HWY_NAMESPACE::Xor(load(2), load(3)));
    sum2 = hwy::HWY_NAMESPACE::Xor(sum2, hwy::HWY_NAMESPACE::Xor(load(4), load(5)));
    sum3 = hwy::HWY_NAMESPACE::Xor(sum3, hwy::HWY_NAMESPACE::Xor(load(6), load(7)));
  }
  sum0 = hwy::HWY_NAMESPACE::Xor(hwy::HWY_NAMESPACE::Xor(sum0, sum1), hwy::HWY_NAMESPACE::Xor(sum2, sum3));
  volatile uint32_t reader = hwy::HWY_NAMESPACE::GetLane(sum0);
  static_cast<void>(reader);
  *args.work = static_cast<double>(count) * 4;
}
