// Random numbers by counting: Philox4x32, where the n-th number of a stream needs none of those before it.
#pragma once

#include <array>
#include <cstdint>

namespace mh {

// Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a bijection of the counter for each
// key. 10 rounds are the paper's default, 7 the fewest it found to pass BigCrush.
template <int Rounds>
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < Rounds; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// Numbers 4·group … 4·group + 3 of a stream: Philox4x32-10 with key = seed, counter = (group, stream), low words first.
// Uniform: multiples of 2^-32 in [0, 1). Normal: N(0, 1) by Box and Muller, |x| < 6.8. The same bits on every machine.
std::array<uint32_t, 4> random_bits(uint64_t seed, uint64_t group, uint64_t stream = 0);
std::array<double, 4> random_uniform(uint64_t seed, uint64_t group, uint64_t stream = 0);
std::array<double, 4> random_normal(uint64_t seed, uint64_t group, uint64_t stream = 0);

// One number after the other; words and normals are each drawn from whole groups of their own.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t bits();
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal();
  // From 0 to n - 1, each equally often to within n / 2^64. Throws: invalid_argument unless n >= 1.
  int64_t below(int64_t n);

 private:
  uint64_t seed_, stream_;
  uint64_t group_ = 0;  // the next one
  int words_left_ = 0, normals_left_ = 0;
  std::array<uint32_t, 4> words_{};
  std::array<double, 4> normals_{};
};

}  // namespace mh
