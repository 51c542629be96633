// A block of queries in lanes against a block of keys: which pairs are kept, and their scores.
#pragma once

#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Keys are taken in blocks of this many, counted from key 0: the unit of the running maximum and of every fixed order.
constexpr int64_t kBlockKeys = 64;
constexpr int kMaxQueries = kTileVectors * kLanes;

// Up to kTileVectors vectors of queries of one head. Lanes past `count` hold zeros, keep every key, and are never
// written out.
struct QueryBlock {
  int64_t sequence, head, first;
  int count, vectors;
  float* columns;                               // (Dk, width): q; cosine: q / |q|; euclidean: 2q
  float offset[kMaxQueries];                    // euclidean: -|q|²
  int32_t low[kMaxQueries], high[kMaxQueries];  // keeps low <= j <= high, by position and length
  int32_t document[kMaxQueries];
  int32_t document_low, document_high;
  bool numbered;  // rows are told from keys by the numbers of their documents: the limits do not tell
  int64_t low_min, low_max, high_min, high_max;
  int64_t reach[kTileVectors];  // vectors 0 … n keep no key from this one on
  int64_t position;             // of lane 0

  int64_t width() const { return static_cast<int64_t>(vectors) * kLanes; }
};

struct KeyBlock {
  int64_t first = 0, count = 0;
  Rows k{}, v{};
  float offset[kBlockKeys];  // euclidean: -|k|²
  int finite = -1;           // of v: not looked at yet, no, yes
};

// What turns a product into a score in units of log 2 (before a cap: over cap).
struct ScoreUnits {
  float query;     // factor on q · k
  float square;    // euclidean: factor on |q|² and |k|²
  float cap;       // 0: none; else cap · log2 e
  float cap_rest;  // what rounding that to f32 left
};

inline ScoreUnits units_of(const Scores& s, int64_t head) {
  const double limit = static_cast<double>(s.cap), own = static_cast<double>(s.scale[head]);
  const auto scale = static_cast<float>(limit > 0 ? own / limit : own * kPerUnit);
  const auto cap = static_cast<float>(limit * kPerUnit);
  return {s.similarity == Similarity::euclidean ? 2 * scale : scale, -scale, cap,
          static_cast<float>(limit * kPerUnit - static_cast<double>(cap))};
}

// Numbers of rows [lane, lane + kLanes) of a block; what stands past its rows is not read.
HWY_INLINE hn::VFromD<hn::ScalableTag<int32_t>> row_numbers(const int32_t* rows, int lane, int count) {
  if (lane + kLanes <= count) return hn::LoadU(i32, rows + lane);
  HWY_ALIGN int32_t some[kLanes] = {};
  for (int r = 0; lane + r < count; ++r) some[r] = rows[lane + r];
  return hn::Load(i32, some);
}

// The structural limits of each row; rows that keep nothing get high < low.
inline void limit_rows(const Scores& scores, const Sequence& s, QueryBlock& q) {
  const bool by_document = scores.document_begin && !s.scattered;
  q.position = s.position + q.first;
  q.numbered = scores.k_documents && !by_document;
  if (scores.behind == kUnbounded && scores.ahead == kUnbounded && !scores.has_prefix && !by_document && s.k_len > 0) {
    for (int r = 0; r < static_cast<int>(q.width()); ++r) q.low[r] = 0, q.high[r] = static_cast<int32_t>(s.k_len - 1);
    q.low_min = q.low_max = 0;
    q.high_min = q.high_max = s.k_len - 1;
    for (int n = 0; n < q.vectors; ++n) q.reach[n] = s.k_len;
    return;
  }
  // Farther away than any key is, but a row further on still a number of 32 bits.
  constexpr int64_t far = INT32_MAX - kMaxQueries;
  const auto row_at = [&](int64_t at, int lane) HWY_ATTR __attribute__((always_inline)) {
    return hn::Iota(i32, static_cast<int32_t>(larger(-far, smaller(far, at)) + lane));
  };
  const auto zero = hn::Zero(i32), most = hn::Set(i32, INT32_MAX),
             last = hn::Set(i32, static_cast<int32_t>(s.k_len - 1));
  const int64_t documents = by_document ? q.sequence * scores.q_documents.size[1] + q.first : 0;
  auto low_min = most, high_min = most, low_max = zero, high_max = hn::Set(i32, -1);
  for (int n = 0; n < q.vectors; ++n) {
    const int lane = n * kLanes;
    auto low = zero, high = last;
    if (scores.behind != kUnbounded) low = hn::Max(low, row_at(q.position - scores.behind, lane));
    if (scores.ahead != kUnbounded) high = hn::Min(high, row_at(q.position + scores.ahead, lane));
    if (scores.has_prefix)
      high = hn::Min(high, hn::Max(row_at(q.position, lane), hn::Set(i32, static_cast<int32_t>(s.prefix - 1))));
    if (by_document) {
      low = hn::Max(low, row_numbers(scores.document_begin + documents, lane, q.count));
      high = hn::Min(high, hn::Sub(row_numbers(scores.document_end + documents, lane, q.count), hn::Set(i32, 1)));
    }
    const auto none = hn::Gt(low, high), inside = hn::FirstN(i32, static_cast<size_t>(smaller(kLanes, q.count - lane)));
    low = hn::IfThenZeroElse(none, low);
    high = hn::IfThenElse(none, hn::Set(i32, -1), high);
    low_min = hn::Min(low_min, hn::IfThenElse(inside, low, most));
    high_min = hn::Min(high_min, hn::IfThenElse(inside, high, most));
    low_max = hn::Max(low_max, hn::IfThenElseZero(inside, low));
    high_max = hn::Max(high_max, hn::IfThenElse(inside, high, hn::Set(i32, -1)));
    q.reach[n] = hn::GetLane(hn::MaxOfLanes(i32, high_max)) + 1;
    hn::StoreU(hn::IfThenElseZero(inside, low), i32, q.low + lane);
    hn::StoreU(hn::IfThenElse(inside, high, most), i32, q.high + lane);
  }
  q.low_min = hn::GetLane(hn::MinOfLanes(i32, low_min));
  q.low_max = hn::GetLane(hn::MaxOfLanes(i32, low_max));
  q.high_min = hn::GetLane(hn::MinOfLanes(i32, high_min));
  q.high_max = q.reach[q.vectors - 1] - 1;
}

inline void load_documents(const Scores& scores, QueryBlock& q) {
  const View& d = scores.q_documents;
  if (!q.numbered) return;
  for (int r = 0; r < static_cast<int>(q.width()); ++r) {
    const int64_t row = q.first + (r < q.count ? r : 0);
    q.document[r] = static_cast<const int32_t*>(d.data)[q.sequence * d.stride[0] + row * d.stride[1]];
    q.document_low = r == 0 || q.document[r] < q.document_low ? q.document[r] : q.document_low;
    q.document_high = r == 0 || q.document[r] > q.document_high ? q.document[r] : q.document_high;
  }
}

// Pointers to kLanes rows of x from lane `lane` on: in place for f32, else widened into room (kLanes × Dk).
// Lanes past the end point at zeros.
inline void lane_rows(const View& x, const Sequence& s, const QueryBlock& q, int lane, int64_t width, float* room,
                      const float* zeros, const float* (&rows)[kLanes]) {
  const RowWalk from = walk(x, s.batch, q.head, s.q_begin + q.first + lane);
  for (int r = 0; r < kLanes; ++r) {
    if (lane + r >= q.count) {
      rows[r] = zeros;
      continue;
    }
    const char* at = from.at(r);
    if (x.dtype == DType::f32) {
      rows[r] = reinterpret_cast<const float*>(at);
    } else {
      widen_row(x.dtype, at, width, 1.0f, room + r * width);
      rows[r] = room + r * width;
    }
  }
}

// Fills columns, offset, limits and documents of the rows [first, first + count). room: kLanes × Dk; zeros: Dk.
inline void load_queries(const View& x, const Scores& scores, const Sequence& s, QueryBlock& q, float* room,
                         const float* zeros) {
  const int64_t width = x.size[3];
  for (int n = 0; n < q.vectors; ++n) {
    const float* rows[kLanes];
    lane_rows(x, s, q, n * kLanes, width, room, zeros, rows);
    HWY_ALIGN float factor[kLanes];
    for (int r = 0; r < kLanes; ++r) {
      factor[r] = 1;
      if (scores.similarity == Similarity::cosine) {
        normalise_row(rows[r], width, room + r * width);
        rows[r] = room + r * width;
      }
      if (scores.similarity == Similarity::euclidean) factor[r] = 2, q.offset[n * kLanes + r] = -square(rows[r], width);
    }
    rows_to_columns(rows, width, hn::Load(f32, factor), q.columns + n * kLanes, q.width());
  }
  limit_rows(scores, s, q);
  load_documents(scores, q);
}

// Room for the general score pass of one block.
struct ScoreRoom {
  float* bias;     // (kBlockKeys, kMaxQueries)
  float* rows;     // (kLanes, kBlockKeys)
  uint32_t* kept;  // (2, kMaxQueries): bit j % 32 of word j / 32: the dense masks keep key begin + j
  float* slope;    // (kBlockKeys, kMaxQueries): d cap(s) / ds, or null where nobody asks
};

inline ScoreRoom take_score_room(Scratch& scratch, bool slope) {
  return {take<float>(scratch, kBlockKeys * kMaxQueries), take<float>(scratch, kLanes * kBlockKeys),
          take<uint32_t>(scratch, 2 * kMaxQueries), slope ? take<float>(scratch, kBlockKeys * kMaxQueries) : nullptr};
}

enum class Pairs { none, some, all };

// Keys [begin, end) of a block that the rows of q can reach, begin at a multiple of 8.
struct KeySpan {
  int64_t begin, end;
};
inline KeySpan reachable(const QueryBlock& q, int64_t first, int64_t count) {
  return {larger(first, q.low_min / 8 * 8), smaller(first + count, q.high_max + 1)};
}

// Bit j of the result: byte j is not zero, for 64 bytes.
inline uint64_t nonzero_bits(const uint8_t* bytes) {
  const hn::ScalableTag<uint8_t> u8;
  constexpr int kBytes = static_cast<int>(hn::MaxLanes(hn::ScalableTag<uint8_t>()));
  uint8_t bits[8 + 8] = {};
  for (int j = 0; j < 64; j += kBytes) {
    const auto x = hn::LoadU(u8, bytes + j);
    hn::StoreMaskBits(u8, hn::Ne(x, hn::Zero(u8)), bits + j / 8);
  }
  uint64_t all;
  memcpy(&all, bits, 8);
  return all;
}

inline uint64_t first_bits(int64_t count) { return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

inline uint64_t kept_bits(const DenseMask& mask, int64_t b, int64_t h, int64_t i, KeySpan keys) {
  const View& w = mask.where;
  const uint8_t* row = static_cast<const uint8_t*>(w.data) + b * w.stride[0] + h * w.stride[1] + i * w.stride[2] +
                       keys.begin * w.stride[3];
  const int64_t count = keys.end - keys.begin;
  uint8_t bytes[64] = {};
  uint64_t set;
  if (w.stride[3] == 1 && count == 64) {
    set = nonzero_bits(row);
  } else {
    if (w.stride[3] == 1)
      memcpy(bytes, row, static_cast<size_t>(count));
    else
      for (int64_t j = 0; j < count; ++j) bytes[j] = row[j * w.stride[3]];
    set = nonzero_bits(bytes);
  }
  return mask.keep ? set : ~set;
}

// The dense masks of a tile; bit j of the result: key begin + j is kept by some row, by every row.
struct KeptKeys {
  uint64_t any, every;
};
inline KeptKeys load_dense(const Scores& scores, const QueryBlock& q, KeySpan keys, const ScoreRoom& room) {
  const uint64_t inside = first_bits(keys.end - keys.begin);
  uint64_t any = 0, every = inside, bits = inside;
  bool one_row = true;  // a padding mask says the same of every query
  for (int m = 0; m < scores.dense_count; ++m) one_row = one_row && scores.dense[m].where.stride[2] == 0;
  for (int r = 0; r < static_cast<int>(q.width()); ++r) {
    if (r >= q.count || r == 0 || !one_row) bits = inside;
    for (int m = 0; m < scores.dense_count && r < q.count && (r == 0 || !one_row); ++m)
      bits &= kept_bits(scores.dense[m], q.sequence, q.head, q.first + r, keys);
    if (r < q.count) any |= bits, every &= bits;
    room.kept[r] = static_cast<uint32_t>(bits);
    room.kept[kMaxQueries + r] = static_cast<uint32_t>(bits >> 32);
  }
  return {any, every};
}

inline Pairs document_pairs(const Scores& scores, const QueryBlock& q, KeySpan keys) {
  const View& d = scores.k_documents;
  const int32_t* ids = static_cast<const int32_t*>(d.data) + q.sequence * d.stride[0];
  int32_t low = INT32_MAX, high = INT32_MIN;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    const int32_t id = ids[j * d.stride[1]];
    low = id < low ? id : low;
    high = id > high ? id : high;
  }
  if (high < q.document_low || low > q.document_high) return Pairs::none;
  return low == high && q.document_low == q.document_high ? Pairs::all : Pairs::some;
}

struct TileKind {
  Pairs pairs = Pairs::all;
  bool banded = false, documents = false, dense = false;  // which masks must be tested pair by pair
};

// `kept`, where given, becomes the keys up to the last one that dense masks keep, and the kind is that of those: behind
// a padding mask nothing is computed, and before it nothing masked.
inline TileKind classify(const Scores& scores, const QueryBlock& q, KeySpan keys, const ScoreRoom& room,
                         KeySpan* kept = nullptr) {
  TileKind kind;
  if (keys.end <= keys.begin) return {.pairs = Pairs::none};
  if (q.numbered) {
    const Pairs by = document_pairs(scores, q, keys);
    if (by == Pairs::none) return {.pairs = Pairs::none};
    kind.documents = by == Pairs::some;
  }
  if (scores.dense_count > 0) {
    const KeptKeys by = load_dense(scores, q, keys, room);
    if (by.any == 0) return {.pairs = Pairs::none};
    if (kept) keys.end = kept->end = keys.begin + 64 - __builtin_clzll(by.any);
    kind.dense = (~by.every & first_bits(keys.end - keys.begin)) != 0;
  }
  kind.banded = q.low_max > keys.begin || q.high_min < keys.end - 1;
  if (kind.banded || kind.documents || kind.dense) kind.pairs = Pairs::some;
  return kind;
}
