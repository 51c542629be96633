// The loop of bf16 pair products: what the registers of a rung that has them can do at most.
#pragma once

#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// As many chains as a register tile of the matrix product has sums. Each pair of products cancels: sums stay what they
// were.
void pair_loop(const LimitArgs& args) {
  constexpr int kChains = kTileRows * kTileVectors;
  constexpr uint32_t kPlus = 0x3fa0, kMinus = 0xbfa0, kFactor = 0x3f40;  // 1.25, -1.25, 0.75
  const auto factors = hn::Set(hn::ScalableTag<uint32_t>(), kFactor << 16 | kFactor);
  V chain[kChains];
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) chain[c] = hn::Set(f32, 1.0f + 0.03125f * static_cast<float>(c));
  for (int64_t round = 0; round < args.rounds; ++round) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) chain[c] = add_products(chain[c], kMinus << 16 | kPlus, factors);
  }
#pragma GCC unroll 24
  for (int c = 1; c < kChains; ++c) chain[0] = hn::Add(chain[0], chain[c]);
  volatile float reader = hn::GetLane(chain[0]);  // without a reader the compiler would drop the loop
  static_cast<void>(reader);
  *args.work = static_cast<double>(args.rounds) * kChains * 4.0 * kLanes;
}
