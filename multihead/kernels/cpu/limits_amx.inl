// The tile loops of the amx rung: its peak, and the probe that tells in which of its two states the unit is.
// Included inside the unnamed namespace of the rung. Needs the kernel's permission for tile data, which detection asks
// for.
#pragma once

// Eight tiles of 16 rows of 64 bytes, palette 1: the palette cannot be read where a hypervisor hides leaf 0x1D.
struct alignas(64) LimitTileConfig {
  uint8_t palette = 1, start = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

inline constexpr int kLimitTileBytes = 1024;

struct alignas(64) LimitTiles {
  uint16_t element[16 * kLimitTileBytes / 2];
};

// bf16 of both signs between 1/4 and 2. Zero data clocks 15-20 % higher than real data (Sapphire Rapids).
inline void fill_limit_tiles(LimitTiles& tiles) {
  uint32_t state = 12345;
  for (uint16_t& element : tiles.element) {
    state = state * 1664525u + 1013904223u;
    const uint32_t sign = state >> 31, exponent = 125 + (state >> 29 & 1), mantissa = state >> 20 & 127;
    element = static_cast<uint16_t>(sign << 15 | exponent << 7 | mantissa);
  }
}

#define MH_LIMIT_LOAD(tile, address) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(address), "r"(int64_t{64}) : "memory")
#define MH_LIMIT_DOT(c, a, b) asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")
#define MH_LIMIT_ZERO(tile) asm volatile("tilezero %%tmm" #tile ::: "memory")

inline void open_limit_tiles() {
  const LimitTileConfig config;
  asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
  MH_LIMIT_ZERO(0);
  MH_LIMIT_ZERO(1);
  MH_LIMIT_ZERO(2);
  MH_LIMIT_ZERO(3);
}

void tile_loop(const LimitArgs& args) {
  LimitTiles tiles;
  fill_limit_tiles(tiles);
  const char* at = reinterpret_cast<const char*>(tiles.element);
  open_limit_tiles();
  MH_LIMIT_LOAD(4, at);
  MH_LIMIT_LOAD(5, at + kLimitTileBytes);
  MH_LIMIT_LOAD(6, at + 2 * kLimitTileBytes);
  MH_LIMIT_LOAD(7, at + 3 * kLimitTileBytes);
  for (int64_t round = 0; round < args.rounds; ++round) {
    MH_LIMIT_DOT(0, 4, 6);
    MH_LIMIT_DOT(1, 4, 7);
    MH_LIMIT_DOT(2, 5, 6);
    MH_LIMIT_DOT(3, 5, 7);
  }
  asm volatile("tilerelease" ::: "memory");
  *args.work = static_cast<double>(args.rounds) * 4 * 2 * 16 * 16 * 32;
}

void tile_probe_loop(const LimitArgs& args) {
  LimitTiles tiles;
  fill_limit_tiles(tiles);
  const char* at = reinterpret_cast<const char*>(tiles.element);
  open_limit_tiles();
  for (int64_t round = 0; round < args.rounds; ++round) {
    const char* block = at + (round & 3) * 4 * kLimitTileBytes;
    MH_LIMIT_LOAD(4, block);
    MH_LIMIT_LOAD(6, block + kLimitTileBytes);
    MH_LIMIT_DOT(0, 4, 6);
    MH_LIMIT_LOAD(7, block + 2 * kLimitTileBytes);
    MH_LIMIT_DOT(1, 4, 7);
    MH_LIMIT_LOAD(5, block + 3 * kLimitTileBytes);
    MH_LIMIT_DOT(2, 5, 6);
    MH_LIMIT_DOT(3, 5, 7);
  }
  asm volatile("tilerelease" ::: "memory");
  *args.work = static_cast<double>(args.rounds) * 4;
}

#undef MH_LIMIT_LOAD
#undef MH_LIMIT_DOT
#undef MH_LIMIT_ZERO
