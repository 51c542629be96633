// The decode kernel of every rung: values against double, one order of sums, paged and quantised caches, edges.
#include "multihead/kernels/attention_decode.h"

#include <cstring>

#include "tests/kernels/decode_call.h"

namespace mh {
namespace {

std::vector<Decoding> decodings() {
  return {
      {.label = "one query"},
      {.label = "one key", .lengths = {1}},
      {.label = "chunks", .lengths = {1700}, .key_width = 128, .value_width = 128},
      {.label = "long, grouped", .lengths = {9000}, .group = 4, .key_width = 32, .value_width = 32},
      {.label = "ragged",
       .lengths = {5, 0, 513, 1100, 64},
       .key_heads = 2,
       .group = 3,
       .key_width = 40,
       .value_width = 24},
      {.label = "few queries", .lengths = {600}, .key_heads = 2, .queries = 5, .ahead = 0},
      {.label = "grouped queries",
       .lengths = {520},
       .group = 4,
       .queries = 4,
       .key_width = 80,
       .value_width = 96,
       .ahead = 0},
      {.label = "window", .lengths = {2100}, .group = 2, .behind = 700, .ahead = 0},
      {.label = "prefix", .lengths = {300}, .queries = 3, .prefix = 299},
      {.label = "cap", .lengths = {900}, .cap = 2, .spread = 6},
      {.label = "sink", .lengths = {77, 0}, .group = 2, .sink = true},
      {.label = "relative", .lengths = {1030}, .group = 2, .queries = 2, .relative = true},
      {.label = "nearest distances", .lengths = {1030, 2}, .group = 2, .queries = 2, .relative = true, .nearest = 50},
      {.label = "slopes", .lengths = {1030}, .group = 2, .queries = 3, .slopes = true},
      {.label = "bias", .lengths = {131}, .group = 2, .queries = 3, .bias = true},
      {.label = "bias of bf16", .lengths = {131}, .bias = true, .bias_type = DType::bf16},
      {.label = "bias of f16", .lengths = {131}, .bias = true, .bias_type = DType::f16},
      {.label = "documents", .lengths = {2000, 40}, .queries = 2, .documents = true},
      {.label = "dense", .lengths = {530}, .group = 2, .queries = 2, .keep = true, .drop = true},
      {.label = "everything",
       .lengths = {1234, 3},
       .key_heads = 2,
       .group = 2,
       .queries = 3,
       .key_width = 72,
       .value_width = 33,
       .cap = 5,
       .sink = true,
       .relative = true,
       .documents = true,
       .keep = true,
       .bias = true,
       .behind = 900,
       .ahead = 0},
  };
}

TEST(Decode, MatchesTheDoubleReference) {
  for (Decoding s : decodings()) {
    for (const DType cache : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
      s.cache = cache;
      s.query = cache == DType::f16 ? DType::f16 : cache == DType::bf16 ? DType::bf16 : DType::f32;
      Call c = make(s);
      ASSERT_TRUE(kernels::decode_takes(c.args()));
      expect_right_on_every_rung(c, s.label + ", " + std::string(name(cache)));
    }
  }
}

TEST(Decode, TypeOfQueriesIsFree) {
  for (const DType query : {DType::f32, DType::bf16, DType::f16}) {
    for (const DType cache : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
      expect_right_on_every_rung(make({.lengths = {140}, .group = 3, .cache = cache, .query = query}),
                                 std::string(name(query)) + " over " + std::string(name(cache)));
    }
  }
}

// The gaps between rows hold NaN, and the last row ends with its memory.
TEST(Decode, EveryWidthReadsItsRowsOnly) {
  std::vector<int64_t> widths;
  for (int64_t width = 1; width <= 70; width += harness::kLooksForRaces ? 9 : 1) widths.push_back(width);
  for (const int64_t width : {79, 95, 100, 127, 128, 129, 160, 192, 255, 256, 257, 300, 384, 511, 512})
    widths.push_back(width);
  for (const int64_t width : widths) {
    for (const DType cache : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
      for (const int64_t group : {1, 3, 8}) {
        for (const DType query : {DType::f32, DType::bf16}) {
          expect_right_on_every_rung(make({.lengths = {21},
                                           .group = group,
                                           .key_width = width,
                                           .value_width = 513 - width,
                                           .cache = cache,
                                           .query = query,
                                           .gap = width % 3}),
                                     "width " + std::to_string(width) + ", " + std::string(name(cache)));
        }
      }
    }
  }
}

TEST(Decode, BitEqualForAnyThreads) {
  for (const DType cache : {DType::f32, DType::bf16, DType::i8}) {
    Call c = make({.lengths = {9001, 30}, .group = 2, .queries = 2, .cache = cache, .ahead = 0});
    on_every_rung([&](const std::string& rung, const kernels::Table& table) {
      set_threads(1);
      c.run(table);
      const Array o = c.o, lse = c.lse;
      for (const int threads : {2, 3, 7, 16}) {
        set_threads(threads);
        c.run(table);
        EXPECT_EQ(c.o.bytes, o.bytes) << rung << ", " << threads << " threads";
        EXPECT_EQ(c.lse.bytes, lse.bytes) << rung << ", " << threads << " threads";
      }
    });
  }
}

TEST(Decode, BitEqualAloneOrInABatch) {
  const Decoding s = {.lengths = {70, 9100, 0, 1500}, .key_heads = 2, .group = 2, .relative = true};
  Call c = make(s);
  on_every_rung([&](const std::string& rung, const kernels::Table& table) {
    c.run(table);
    const Array all = c.o;
    for (size_t b = 0; b < s.lengths.size(); ++b) {
      c.o.clear();
      AttentionForwardArgs a = c.args();
      a.sequences = {c.sequences.data() + b, 1};
      table.attention_decode(a, queue_of(Device{}));
      const auto row = static_cast<size_t>(4 * 64 * sizeof(float));
      EXPECT_EQ(std::memcmp(c.o.bytes.data() + b * row, all.bytes.data() + b * row, row), 0) << rung << ", " << b;
    }
  });
}

// The rows of a group do not see each other, so neither their number nor the tile they fall into changes a bit.
TEST(Decode, BitEqualForAnyCompanionsInTheGroup) {
  for (const DType cache : {DType::f32, DType::bf16, DType::i8}) {
    Call c = make({.lengths = {1300}, .group = 15, .key_width = 128, .value_width = 80, .cache = cache});
    on_every_rung([&](const std::string& rung, const kernels::Table& table) {
      c.run(table);
      const Array all = c.o;
      for (const int64_t h : {0, 7, 8, 11, 12, 14}) {
        c.o.clear();
        AttentionForwardArgs a = c.args();
        a.q.data = c.q.bytes.data() + h * 128 * 4;
        a.q.size[1] = 1;
        a.scores.scale = c.scale.data() + h;
        table.attention_decode(a, queue_of(Device{}));
        EXPECT_EQ(std::memcmp(c.o.bytes.data(), all.bytes.data() + h * 80 * 4, 80 * 4), 0) << rung << ", row " << h;
      }
    });
  }
}

// The same keys and values one behind the other.
Call contiguous(const Call& paged) {
  Decoding s = paged.setup;
  s.page = 0;
  Call plain = make(s);
  plain.q = paged.q;
  const auto copy_row = [&](const Array& from, Array& to, int64_t b, int64_t h, int64_t j, int64_t width) {
    const int64_t at = paged.key_at(from, b, h, j);
    for (int64_t d = 0; d < width; ++d) to.set(to.at(b, h, j, d), static_cast<float>(from.get(at + d)));
  };
  for (int64_t b = 0; b < paged.batch(); ++b) {
    for (int64_t h = 0; h < s.key_heads; ++h) {
      for (int64_t j = 0; j < s.lengths[static_cast<size_t>(b)]; ++j) {
        copy_row(paged.k, plain.k, b, h, j, s.key_width);
        copy_row(paged.v, plain.v, b, h, j, s.value_width);
        if (s.cache != DType::i8) continue;
        copy_row(paged.k_scale, plain.k_scale, b, h, j, 1);
        copy_row(paged.v_scale, plain.v_scale, b, h, j, 1);
      }
    }
  }
  return plain;
}

TEST(Decode, PagedEqualsContiguous) {
  for (const DType cache : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
    for (const int64_t page : {1, 7, 16}) {
      for (const int64_t width : {20, 64}) {
        Call paged = make({.lengths = {530, 3, 0, 70},
                           .key_heads = 2,
                           .group = 3,
                           .key_width = width,
                           .value_width = 64,
                           .cache = cache,
                           .query = cache == DType::bf16 ? DType::bf16 : DType::f32,
                           .page = page});
        Call plain = contiguous(paged);
        on_every_rung([&](const std::string& rung, const kernels::Table& table) {
          paged.run(table);
          plain.run(table);
          EXPECT_EQ(paged.o.bytes, plain.o.bytes) << rung << ", pages of " << page << ", " << name(cache);
          EXPECT_EQ(paged.lse.bytes, plain.lse.bytes) << rung << ", pages of " << page << ", " << name(cache);
        });
      }
    }
  }
}

// Pages that end inside a group of four keys, in a block that fills the strip of scores.
TEST(Decode, OddPagesKeepTheRowsApart) {
  for (const int64_t page : {7, 11}) {
    expect_right_on_every_rung(make({.lengths = {8300}, .group = 3, .key_width = 16, .value_width = 16, .page = page}),
                               "pages of " + std::to_string(page));
  }
}

TEST(Decode, Int8AddsAtMostTwoPercent) {
  on_every_rung([](const std::string& rung, const kernels::Table& table) {
    Call exact = make({.lengths = {600}, .key_heads = 4, .group = 2});
    Call rounded = make({.lengths = {600}, .key_heads = 4, .group = 2, .cache = DType::i8});
    rounded.q = exact.q;
    const auto quantise = [](const Array& from, Array& to, Array& scales) {
      for (int64_t h = 0; h < 4; ++h) {
        for (int64_t j = 0; j < 600; ++j) {
          double top = 0;
          for (int64_t d = 0; d < 64; ++d) top = std::max(top, std::fabs(from.get(from.at(0, h, j, d))));
          scales.set(scales.at(0, h, j), static_cast<float>(top / 127));
          for (int64_t d = 0; d < 64; ++d)
            to.set(to.at(0, h, j, d), static_cast<float>(from.get(from.at(0, h, j, d)) * 127 / top));
        }
      }
    };
    quantise(exact.k, rounded.k, rounded.k_scale);
    quantise(exact.v, rounded.v, rounded.v_scale);
    exact.run(table);
    rounded.run(table);
    double error = 0, size = 0;
    for (int64_t n = 0; n < 8 * 64; ++n) {
      error += std::pow(exact.o.get(n) - rounded.o.get(n), 2);
      size += std::pow(exact.o.get(n), 2);
    }
    EXPECT_LE(std::sqrt(error), 0.02 * std::sqrt(size)) << rung;
  });
}

// NaN and infinity in every place of `c` that no row keeps.
void plant_garbage(Call& c) {
  const Decoding& s = c.setup;
  int64_t n = 0;
  for (int64_t b = 0; b < c.batch(); ++b) {
    for (int64_t j = 0; j < c.longest(); ++j) {
      for (int64_t h = 0; h < s.key_heads; ++h) {
        bool wanted = false;
        for (int64_t head = h * s.group; head < (h + 1) * s.group; ++head) {
          for (int64_t i = 0; i < s.queries; ++i) {
            const bool kept = j < s.lengths[static_cast<size_t>(b)] && c.kept(b, head, i, j);
            wanted |= kept;
            if (!kept && s.bias) c.bias.set(c.bias.at(b, head, i, j), ++n % 2 ? kNan : kInfinity);
          }
        }
        if (wanted) continue;
        const float garbage = ++n % 3 ? kNan : -kInfinity;
        if (s.cache == DType::i8) {
          c.k_scale.set(c.k_scale.at(b, h, j), garbage);
          c.v_scale.set(c.v_scale.at(b, h, j), garbage);
          continue;
        }
        c.k.set(c.k.at(b, h, j, n % s.key_width), garbage);
        c.v.set(c.v.at(b, h, j, n % s.value_width), garbage);
      }
    }
  }
}

TEST(Decode, DroppedGarbageChangesNoBit) {
  for (Decoding s : decodings()) {
    for (const DType cache : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
      s.cache = cache;
      Call clean = make(s);
      Call dirty = clean;
      plant_garbage(dirty);
      on_every_rung([&](const std::string& rung, const kernels::Table& table) {
        clean.run(table);
        dirty.run(table);
        EXPECT_EQ(clean.o.bytes, dirty.o.bytes) << rung << ", " << s.label << ", " << name(cache);
        EXPECT_EQ(clean.lse.bytes, dirty.lse.bytes) << rung << ", " << s.label << ", " << name(cache);
      });
    }
  }
}

// What one row drops, another keeps: NaN reaches the second alone.
TEST(Decode, GarbageReachesTheRowsThatKeepIt) {
  on_every_rung([](const std::string& rung, const kernels::Table& table) {
    Call clean = make({.lengths = {650}, .group = 2, .queries = 4, .ahead = 0});
    Call dirty = clean;
    dirty.v.set(dirty.v.at(0, 0, 648, 5), kNan);  // kept by queries 2 and 3
    dirty.k.set(dirty.k.at(0, 0, 649, 9), kNan);  // kept by query 3
    clean.run(table);
    dirty.run(table);
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t d = 0; d < 64; ++d) {
          const int64_t at = clean.o.at(0, h, i, d);
          if (i == 3 || (i == 2 && d == 5)) {
            EXPECT_TRUE(std::isnan(dirty.o.get(at))) << rung << ", row " << i << ", " << d;
          } else {
            EXPECT_EQ(dirty.o.get(at), clean.o.get(at)) << rung << ", row " << i << ", " << d;
          }
        }
      }
    }
  });
}

TEST(Decode, NanAmongDroppedKeysIsKept) {
  on_every_rung([](const std::string& rung, const kernels::Table& table) {
    Call c = make({.lengths = {200}, .keep = true});
    for (int64_t j = 0; j < 200; ++j) c.keep.set(j, j == 3 ? 1.0f : 0.0f);
    c.k.set(c.k.at(0, 0, 3, 0), kNan);
    c.run(table);
    EXPECT_TRUE(std::isnan(c.o.get(0))) << rung;
    EXPECT_TRUE(std::isnan(c.lse.get(0))) << rung;
  });
}

TEST(Decode, BiasOfMinusInfinityDrops) {
  Call c = make({.lengths = {90}, .group = 2, .bias = true});
  for (int64_t j = 10; j < 80; ++j) {
    c.bias.set(c.bias.at(0, 0, 0, j), -kInfinity);
    c.bias.set(c.bias.at(0, 1, 0, j), -kInfinity);
    c.v.set(c.v.at(0, 0, j, j % 64), j % 2 ? kNan : kInfinity);
  }
  expect_right_on_every_rung(c, "bias");
}

TEST(Decode, RowWithoutKeysIsZero) {
  on_every_rung([](const std::string& rung, const kernels::Table& table) {
    for (const bool sink : {false, true}) {
      for (const int64_t length : {0, 100, 1500}) {
        Call c = make({.lengths = {length}, .group = 2, .sink = sink, .keep = true});
        std::fill(c.keep.bytes.begin(), c.keep.bytes.end(), uint8_t{0});
        for (int64_t j = 0; j < length; ++j) c.v.set(c.v.at(0, 0, j, 0), kNan);
        c.run(table);
        for (int64_t n = 0; n < 2 * 64; ++n) EXPECT_EQ(c.o.get(n), 0) << rung;
        for (int64_t h = 0; h < 2; ++h)
          EXPECT_EQ(c.lse.get(h), sink ? c.sink[static_cast<size_t>(h)] : -kInfinity) << rung;
      }
    }
  });
}

TEST(Decode, LogitsGrowingToTenThousandStayExact) {
  for (const float sign : {1.0f, -1.0f}) {
    Call c = make({.lengths = {2500}, .bias = true});
    for (int64_t j = 0; j < 2500; ++j) c.bias.set(c.bias.at(0, 0, 0, j), sign * 4 * static_cast<float>(j));
    expect_right_on_every_rung(c, sign > 0 ? "growing" : "falling");
  }
}

// Past 131072 keys a chunk is several blocks, and what the first gathered shrinks as the later ones grow.
TEST(Decode, BlocksOfALongChunkAreRescaled) {
  constexpr int64_t kLength = 140000;
  ASSERT_GT(kernels::decode_chunk_keys(kLength), kernels::kDecodeBlock);
  for (const float slope : {1e-3f, -1e-3f}) {
    Call c = make({.lengths = {kLength}, .key_width = 4, .value_width = 2, .bias = true});
    for (int64_t j = 0; j < kLength; ++j) c.bias.set(j, slope * static_cast<float>(j));
    expect_right_on_every_rung(c, slope > 0 ? "growing" : "falling");
  }
}

// The last vector of an odd row overlaps the one before: an infinite element there counts once, not as 0 · inf too.
TEST(Decode, InfiniteKeyDropsItsPair) {
  for (const DType cache : {DType::f32, DType::bf16}) {
    for (const int64_t width : {20, 37, 100}) {
      for (const int64_t group : {1, 4}) {
        Call c = make({.lengths = {50}, .group = group, .key_width = width, .cache = cache});
        for (int64_t d = 0; d < width; ++d) {
          for (int64_t h = 0; h < group; ++h) c.q.set(c.q.at(0, h, 0, d), 1.0f + 0.01f * static_cast<float>(d));
          if (d < 50) c.k.set(c.k.at(0, 0, d, d), -kInfinity);
        }
        if (width < 50) {
          c.v.set(c.v.at(0, 0, 0, 0), kNan);
          expect_right_on_every_rung(c, "width " + std::to_string(width));
          continue;
        }
        on_every_rung([&](const std::string& rung, const kernels::Table& table) {
          c.run(table);
          EXPECT_EQ(c.lse.get(0), -kInfinity) << rung;
        });
      }
    }
  }
}

TEST(Decode, WritesNothingButItsRows) {
  on_every_rung([](const std::string& rung, const kernels::Table& table) {
    Call c = make({.lengths = {40}, .queries = 3});
    c.sequences[0].q_begin = 1;
    c.sequences[0].q_len = 1;
    c.run(table);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(std::isnan(c.o.get(c.o.at(0, 0, i, 0))), i != 1) << rung;
    AttentionForwardArgs a = c.args();
    a.lse = View();
    table.attention_decode(a, queue_of(Device{}));
  });
}

TEST(Decode, TakesFewRowsWithPlainProducts) {
  Call c = make({.lengths = {40}, .group = 4, .queries = 4});
  AttentionForwardArgs a = c.args();
  EXPECT_TRUE(kernels::decode_takes(a));
  a.scores.dropout_threshold = 1;
  EXPECT_FALSE(kernels::decode_takes(a));
  a = c.args();
  a.scores.similarity = kernels::Similarity::cosine;
  EXPECT_FALSE(kernels::decode_takes(a));
  a.scores.similarity = kernels::Similarity::euclidean;
  EXPECT_FALSE(kernels::decode_takes(a));
  Call wide = make({.lengths = {40}, .group = 4, .queries = 5});
  EXPECT_FALSE(kernels::decode_takes(wide.args()));
}

TEST(Decode, ChunksCoverEveryLength) {
  for (int64_t length = 0; length < 300000; length += 1 + length / 50) {
    const int64_t keys = kernels::decode_chunk_keys(length), chunks = kernels::decode_chunks(length);
    EXPECT_GE(keys * chunks, length);
    EXPECT_LT(keys * (chunks - 1), std::max<int64_t>(length, 1));
    EXPECT_LE(chunks, 128);
  }
}

}  // namespace
}  // namespace mh
