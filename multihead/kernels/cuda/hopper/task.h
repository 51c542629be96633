// How a launch cuts its work into tiles, and the memory its blocks share.
#pragma once

#include "multihead/kernels/cuda/interval.h"

namespace mh::kernels::cuda {

struct Task {
  int* counter = nullptr;     // two ints, 0 before the launch and again after it
  uint16_t* flags = nullptr;  // 16 a tile, one per warp. Forward: the block that must do the tile again, or 0xFFFF;
                              // backward: met garbage
  const float *lse2 = nullptr, *delta = nullptr;  // backward: (B, H, padded)
  int padded = 0;
  int tiles = 0, blocks = 0;  // blocks: tiles of one head
  int heads = 0;              // heads of all sequences
  bool joined = false;        // one TMA brings a tile (maps.h)
  int group = 1;              // heads whose keys fit L2 together: inside a group the longest tiles come first
};

struct TileAt {
  int m, h, b;
};

// Which block does a tile does not change its bits. Ordered: in groups of heads, `m` falling.
template <bool kOrdered>
MH_BOTH inline TileAt tile_at(const Task& task, int tile, int heads_each) {
  TileAt at;
  int head;
  if (kOrdered) {
    const int each = task.blocks * task.group, g = tile / each, r = tile - g * each;
    const int size = task.heads - g * task.group < task.group ? task.heads - g * task.group : task.group;
    at.m = task.blocks - 1 - r / size;
    head = g * task.group + r % size;
  } else {
    head = tile / task.blocks;
    at.m = tile - head * task.blocks;
  }
  at.b = head / heads_each;
  at.h = head - at.b * heads_each;
  return at;
}

// What the producer tells its consumers of a tile of query rows, through shared memory: worked out by all of them
// between two tiles it cost 5 % of a forward call at 512 keys.
struct Facts {
  int tile;                    // -1: the end
  int batch, head, row, rows;  // rows [row, …) of a sequence of `rows`
  int first, last;             // key blocks
  int position, k_len, prefix;
  int whole_first[4], whole_last[4];  // of each warpgroup's rows: blocks that need no mask
  int64_t at, lse_at;                 // row 0 of the head in the output, and in lse
};

template <int BM, int BN>
MH_BOTH inline void tell(Facts& facts, const Call& call, const TileAt& at, const Span& span, const Interval& mask,
                         const Blocks& blocks, const Array& out) {
  facts.batch = at.b;
  facts.head = at.h;
  facts.row = at.m * BM;
  facts.rows = span.q_len;
  facts.first = blocks.first;
  facts.last = blocks.last;
  facts.position = mask.position;
  facts.k_len = mask.k_len;
  facts.prefix = mask.prefix;
  for (int g = 0; g < BM / 64; ++g) {
    const Blocks own = blocks_of(mask, facts.row + g * 64, facts.row + g * 64 + 64, BN);
    facts.whole_first[g] = Interval::larger(own.whole_first, blocks.first);
    facts.whole_last[g] = Interval::larger(own.whole_last, blocks.first);
  }
  facts.at = out.at(span.batch, at.h, span.q_begin);
  facts.lse_at = call.lse ? call.lse.at(span.batch, at.h, span.q_begin) : 0;
}
MH_BOTH inline Interval mask_of(const Facts& facts, const Options& options) {
  return {facts.position, facts.k_len, options.behind, options.ahead, facts.prefix};
}

}  // namespace mh::kernels::cuda
