// Eight tiles of 16 rows of 64 bytes: the AMX instructions, and a software twin that gives the same bits.
// (tile_pairs.inl: a third kind, which has no single products.)
//
// dot<C, A, B>: C (16 × 16 f32) += A (16 × 32 bf16) · B, where B holds pairs: word n of its row k is (b[2k][n],
// b[2k+1][n]). Every task makes one object, which loads the tile configuration, and ends it before the task ends.
#pragma once

inline constexpr int64_t kTileBytes = 1024, kTileRow = 64;
inline constexpr int64_t kTileFloats = 256;

// Four tiles of f32: rows of a tile stand `row` floats apart, the right tiles `beside`, the lower ones `below` floats
// further.
struct TileBlock {
  float* at;
  int64_t row, beside, below;
  int64_t rows = 16;  // of each tile; what is past them need not be computed
};

// Palette 1 is written down: it cannot be read where a hypervisor hides CPUID leaf 0x1D.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileConfig kTileConfig{};

// g++ 12's intrinsics lack memory dependencies (stores before a tile load may sink below it), hence the asm.
class HardwareTiles {
 public:
  static constexpr bool kWholeSums = false;

  HardwareTiles() { asm volatile("ldtilecfg %0" ::"m"(kTileConfig) : "memory"); }
  ~HardwareTiles() { asm volatile("tilerelease" ::: "memory"); }
  HardwareTiles(const HardwareTiles&) = delete;
  HardwareTiles& operator=(const HardwareTiles&) = delete;

  template <int T>
  HWY_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" ::"n"(T));
  }
  template <int T>
  HWY_INLINE void load(const void* at, int64_t row_bytes = kTileRow) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(at), "r"(row_bytes), "n"(T) : "memory");
  }
  // For what passes once: does not push the rest out of L1 (1.35 × on attention, Sapphire Rapids).
  template <int T>
  HWY_INLINE void stream(const void* at, int64_t row_bytes = kTileRow) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(at), "r"(row_bytes), "n"(T) : "memory");
  }
  template <int T>
  HWY_INLINE void store(void* at, int64_t row_bytes = kTileRow) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(at), "r"(row_bytes), "n"(T) : "memory");
  }
  template <int C, int A, int B>
  HWY_INLINE void dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"n"(C), "n"(A), "n"(B));
  }
};

// TDPBF16PS as Intel's manual states it: per row, the products of even and of odd places are gathered apart from zero
// in ascending order by fused multiply-adds, their sum is added to C; denormals are zero going in and out, MXCSR is
// ignored.
[[maybe_unused]] HWY_NOINLINE void tile_dot_in_software(float* c, const uint32_t* a, const uint32_t* b) {
  uint32_t callers, flushing = 0x9fc0;  // all exceptions masked, nearest even, FTZ, DAZ
  asm volatile("stmxcsr %0" : "=m"(callers)::"memory");
  asm volatile("ldmxcsr %0" ::"m"(flushing) : "memory");
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int m = 0; m < 16; m += 4) {
    __m512 even[4], odd[4];
    for (int r = 0; r < 4; ++r) even[r] = odd[r] = _mm512_setzero_ps();
    for (int k = 0; k < 16; ++k) {
      const __m512i pair = _mm512_load_si512(b + k * 16);
      const __m512 low = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
      const __m512 high = _mm512_castsi512_ps(_mm512_and_si512(pair, upper));
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const __m512i x = _mm512_set1_epi32(static_cast<int>(a[(m + r) * 16 + k]));
        even[r] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)), low, even[r]);
        odd[r] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, upper)), high, odd[r]);
      }
    }
    for (int r = 0; r < 4; ++r) {
      float* to = c + (m + r) * 16;
      _mm512_store_ps(to, _mm512_add_ps(_mm512_load_ps(to), _mm512_add_ps(even[r], odd[r])));
    }
  }
  asm volatile("ldmxcsr %0" ::"m"(callers) : "memory");
}

class SoftwareTiles {
 public:
  static constexpr bool kWholeSums = false;

  SoftwareTiles() = default;
  SoftwareTiles(const SoftwareTiles&) = delete;
  SoftwareTiles& operator=(const SoftwareTiles&) = delete;

  template <int T>
  void zero() {
    memset(tile_[T], 0, kTileBytes);
  }
  template <int T>
  void load(const void* at, int64_t row_bytes = kTileRow) {
    for (int r = 0; r < 16; ++r) memcpy(tile_[T] + r * 16, static_cast<const char*>(at) + r * row_bytes, kTileRow);
  }
  template <int T>
  void stream(const void* at, int64_t row_bytes = kTileRow) {
    load<T>(at, row_bytes);
  }
  template <int T>
  void store(void* at, int64_t row_bytes = kTileRow) {
    for (int r = 0; r < 16; ++r) memcpy(static_cast<char*>(at) + r * row_bytes, tile_[T] + r * 16, kTileRow);
  }
  template <int C, int A, int B>
  void dot() {
    tile_dot_in_software(reinterpret_cast<float*>(tile_[C]), tile_[A], tile_[B]);
  }

 private:
  alignas(64) uint32_t tile_[8][kTileFloats];
};
