// The matrix product on tiles: 32 × 32 sums, bf16 operands, f32 sums kept in four tiles.
//
// w is packed in panels of 32 columns: for each 32 of k, two tiles of 1 KiB; word c of row r of tile t is
// (w[k + 2r][16 t + c], w[k + 2r + 1][16 t + c]). Columns and k past the end are zeros.
// a is read where it lies if K is a multiple of 32 and 32 rows may be read; else from a copy padded with zeros (the
// values past the end of a row meet zeros of w, but NaN · 0 is NaN).

inline constexpr int64_t kPanelColumns = 32, kPanelDepth = 32;

inline int64_t tile_panel_bytes(int64_t k) { return round_up(k, kPanelDepth) / kPanelDepth * 2 * kTileBytes; }

// One panel: columns [0, columns) of w, element (k, n) at w[k · along_k + n · along_n].
inline void pack_tile_panel(const uint16_t* w, int64_t along_k, int64_t along_n, int64_t depth, int64_t columns, uint32_t* out) {
  for (int64_t k = 0; k < depth; k += kPanelDepth) {
    for (int64_t t = 0; t < 2; ++t) {
      for (int64_t r = 0; r < 16; ++r) {
        for (int64_t c = 0; c < 16; ++c) {
          const int64_t row = k + 2 * r, column = 16 * t + c;
          const uint16_t* at = w + row * along_k + column * along_n;
          uint32_t word = 0;
          if (column < columns && row < depth) word = at[0];
          if (column < columns && row + 1 < depth) word |= static_cast<uint32_t>(at[along_k]) << 16;
          *out++ = word;
        }
      }
    }
  }
}

// c (32 × 32, row_floats apart) = (c +) a (32 rows, a_bytes apart) · panel over `steps` times 32 of k, k ascending.
// The panel wants to stay in L1 (steps <= 16: 32 KiB) while rows of a stream past it; c then costs one load and one
// store of 4 KiB per 64 · steps tile products' cycles.
template <class Tiles>
HWY_INLINE void tile_gemm(Tiles& tiles, const void* a, int64_t a_bytes, const uint32_t* panel, int64_t steps, bool add, float* c,
                          int64_t row_floats) {
  const int64_t c_bytes = row_floats * 4;
  float* below = c + 16 * row_floats;
  if (add) {
    tiles.template load<0>(c, c_bytes);
    tiles.template load<1>(c + 16, c_bytes);
    tiles.template load<2>(below, c_bytes);
    tiles.template load<3>(below + 16, c_bytes);
  } else {
    tiles.template zero<0>();
    tiles.template zero<1>();
    tiles.template zero<2>();
    tiles.template zero<3>();
  }
  const char* upper = static_cast<const char*>(a);
  const char* lower = upper + 16 * a_bytes;
#pragma GCC unroll 2
  for (int64_t s = 0; s < steps; ++s) {
    const uint32_t* w = panel + s * 2 * kTileFloats;
    tiles.template stream<4>(upper + s * kTileRow, a_bytes);
    tiles.template load<6>(w);
    tiles.template dot<0, 4, 6>();
    tiles.template load<7>(w + kTileFloats);
    tiles.template dot<1, 4, 7>();
    tiles.template stream<5>(lower + s * kTileRow, a_bytes);
    tiles.template dot<2, 5, 6>();
    tiles.template dot<3, 5, 7>();
  }
  tiles.template store<0>(c, c_bytes);
  tiles.template store<1>(c + 16, c_bytes);
  tiles.template store<2>(below, c_bytes);
  tiles.template store<3>(below + 16, c_bytes);
}
