// Caches: appended and paged hold the same, int8 stays close, pages are shared until written.
#include "multihead/ops/attention/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/check/reference.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::contains;
using test::refusal;
using test::relative_error;
using test::rms;
using test::same_bits;

constexpr int64_t kBatch = 3, kKeyHeads = 2, kKeyWidth = 24, kValueWidth = 16;

KVCacheOptions sized(int64_t capacity, int64_t page = 0, DType dtype = DType::f32) {
  return {.batch = kBatch,
          .key_heads = kKeyHeads,
          .key_width = kKeyWidth,
          .value_width = kValueWidth,
          .capacity = capacity,
          .dtype = dtype,
          .page = page};
}

struct Rows {
  Tensor k, v;
};
Rows rows(int64_t batch, int64_t count, uint64_t seed) {
  return {randn({batch, kKeyHeads, count, kKeyWidth}, seed), randn({batch, kKeyHeads, count, kValueWidth}, seed + 1)};
}

// Ragged: 5 keys for all, 9 more for sequence 2, 1 more for 0 and 2.
void fill(KVCache& cache) {
  const Rows a = rows(kBatch, 5, 10), b = rows(1, 9, 20), c = rows(2, 1, 30);
  cache.append(a.k, a.v);
  cache.append(b.k, b.v, {2});
  cache.append(c.k, c.v, {0, 2});
}

// The same keys side by side, with lengths {6, 5, 15}.
Rows filled() {
  const Rows a = rows(kBatch, 5, 10), b = rows(1, 9, 20), c = rows(2, 1, 30);
  const Rows out{zeros({kBatch, kKeyHeads, 15, kKeyWidth}), zeros({kBatch, kKeyHeads, 15, kValueWidth})};
  for (const auto member : {&Rows::k, &Rows::v}) {
    const Tensor& to = out.*member;
    to.slice(2, 0, 5).copy_from(a.*member);
    to.select(0, 2).slice(1, 5, 14).copy_from((b.*member).select(0, 0));
    to.select(0, 0).slice(1, 5, 6).copy_from((c.*member).select(0, 0));
    to.select(0, 2).slice(1, 14, 15).copy_from((c.*member).select(0, 1));
  }
  return out;
}

const AttentionOptions kOptions{.mask = causal()};

TEST(KVCache, AttentionIsThatOverTheKeysItHolds) {
  KVCache cache(sized(20));
  fill(cache);
  EXPECT_EQ(cache.lengths(), (std::vector<int32_t>{6, 5, 15}));
  const Rows held = filled();
  for (const int64_t queries : {1, 4, 40}) {
    const Tensor q = randn({kBatch, 4, queries, kKeyWidth}, 7);
    const AttentionResult ours = attention(q, cache, kOptions);
    const AttentionResult theirs =
        reference::attention(q, held.k, held.v, {.mask = causal() & lengths(tensor<int32_t>({6, 5, 15}, {kBatch}))});
    EXPECT_LT(relative_error(ours.o, theirs.o), 2e-6) << queries;
    EXPECT_LT(relative_error(ours.lse, theirs.lse), 2e-6) << queries;
  }
}

TEST(KVCache, PagedGivesTheBitsOfAppended) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
    KVCache appended(sized(20, 0, dtype));
    fill(appended);
    for (const int64_t page : {1, 4, 16}) {
      KVCache paged(sized(80, page, dtype));
      fill(paged);
      for (const int64_t queries : {1, 3, 24}) {
        const Tensor q = randn({kBatch, 4, queries, kKeyWidth}, 7);
        const AttentionResult a = attention(q, appended, kOptions), b = attention(q, paged, kOptions);
        EXPECT_TRUE(same_bits(a.o, b.o)) << name(dtype) << " pages of " << page << ", " << queries << " queries";
        EXPECT_TRUE(same_bits(a.lse, b.lse)) << name(dtype) << " pages of " << page << ", " << queries << " queries";
      }
    }
  }
}

TEST(KVCache, Int8AddsAtMostTwoPercent) {
  const int64_t keys = 300;
  KVCacheOptions options = sized(keys, 0, DType::i8);
  options.key_width = options.value_width = 64;
  KVCache cache(options);
  const Tensor k = randn({kBatch, kKeyHeads, keys, 64}, 1), v = randn({kBatch, kKeyHeads, keys, 64}, 2),
               q = randn({kBatch, 4, 2, 64}, 3);
  cache.append(k, v);
  const Tensor ours = attention(q, cache).o, theirs = reference::attention(q, k, v).o;
  const std::vector<double> a = test::numbers(ours), b = test::numbers(theirs);
  double sum = 0;
  for (size_t n = 0; n < a.size(); ++n) sum += (a[n] - b[n]) * (a[n] - b[n]);
  EXPECT_LT(std::sqrt(sum / static_cast<double>(a.size())), 0.02 * rms(theirs));
}

TEST(KVCache, Int8RowsHoldTheirLargestElementExactly) {
  KVCacheOptions options = sized(4, 0, DType::i8);
  options.batch = options.key_heads = 1;
  options.key_width = options.value_width = 3;
  KVCache cache(options);
  cache.append(tensor<float>({-2.54f, 1.27f, 0, 0, 0, 0, NAN, 1, 2}, {1, 1, 3, 3}), zeros({1, 1, 3, 3}));
  EXPECT_EQ(cache.keys.item({0, 0, 0, 0}), -127);
  EXPECT_NEAR(cache.keys.item({0, 0, 0, 1}), 64, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(cache.key_scales.item({0, 0, 0})), 0.02f);
  EXPECT_EQ(cache.key_scales.item({0, 0, 1}), 0);
  EXPECT_TRUE(std::isnan(cache.key_scales.item({0, 0, 2})));
}

TEST(KVCache, TruncateForgets) {
  for (const int64_t page : {0, 4}) {
    KVCache cache(sized(page ? 80 : 20, page));
    fill(cache);
    const Tensor q = randn({kBatch, 4, 1, kKeyWidth}, 7);
    cache.truncate(2, 6);
    const Tensor before = attention(q, cache).o;
    const Rows more = rows(1, 7, 50);
    cache.append(more.k, more.v, {2});
    EXPECT_FALSE(same_bits(attention(q, cache).o, before));
    cache.truncate(2, 6);
    EXPECT_TRUE(same_bits(attention(q, cache).o, before));
  }
}

TEST(KVCache, TruncateGivesPagesBack) {
  KVCache cache(sized(12, 4));
  const Rows twelve = rows(1, 12, 1);
  cache.append(twelve.k, twelve.v, {0});
  EXPECT_NE(refusal([&] { cache.append(twelve.k, twelve.v, {1}); }), "");
  cache.truncate(0, 0);
  cache.append(twelve.k, twelve.v, {1});
  EXPECT_EQ(cache.lengths(), (std::vector<int32_t>{0, 12, 0}));
}

TEST(KVCache, CopiesPartWhenOneGrows) {
  for (const DType dtype : {DType::f32, DType::i8}) {
    for (const int64_t page : {0, 4}) {
      KVCache cache(sized(page ? 80 : 20, page, dtype));
      fill(cache);
      cache.copy(0, 1);
      EXPECT_EQ(cache.lengths()[1], 6);
      const Tensor q = randn({1, 4, 1, kKeyWidth}, 7).broadcast_to({kBatch, 4, 1, kKeyWidth});
      const Tensor same = attention(q, cache).o;
      EXPECT_TRUE(same_bits(same.select(0, 0), same.select(0, 1)));

      const Rows one = rows(1, 1, 60), other = rows(1, 1, 70);
      cache.append(one.k, one.v, {0});
      EXPECT_TRUE(same_bits(attention(q, cache).o.select(0, 1), same.select(0, 1))) << "the copy saw the append";
      cache.append(other.k, other.v, {1});
      const Tensor apart = attention(q, cache).o;
      EXPECT_FALSE(same_bits(apart.select(0, 0), apart.select(0, 1)));
      cache.truncate(1, 6);
      cache.append(one.k, one.v, {1});
      const Tensor again = attention(q, cache).o;
      EXPECT_TRUE(same_bits(again.select(0, 0), again.select(0, 1)));
    }
  }
}

TEST(KVCache, SharedPagesAreCountedOnce) {
  KVCache cache(sized(16, 4));
  const Rows ten = rows(1, 10, 1);
  cache.append(ten.k, ten.v, {0});  // 3 of 4 pages
  cache.copy(0, 1);
  cache.copy(0, 2);
  const Rows three = rows(kBatch, 1, 5), two = rows(2, 1, 5), one = rows(1, 1, 5);
  // Three sequences share the last page: two of them would need a page of their own, and one is left.
  EXPECT_TRUE(
      contains(refusal([&] { cache.append(three.k, three.v); }), "2 pages of 4 keys are needed and 1 are free"));
  EXPECT_EQ(cache.lengths(), (std::vector<int32_t>{10, 10, 10}));
  cache.truncate(2, 0);
  cache.append(two.k, two.v, {0, 1});
  EXPECT_EQ(cache.lengths(), (std::vector<int32_t>{11, 11, 0}));
  EXPECT_NE(refusal([&] { cache.append(one.k, one.v, {2}); }), "");
}

TEST(KVCache, AppendTakesAnyFloatTypeAndStrides) {
  KVCache a(sized(8)), b(sized(8));
  const Rows five = rows(kBatch, 5, 1);
  a.append(five.k.to(DType::bf16), five.v.to(DType::f16));
  b.append(five.k.to(DType::bf16).to(DType::f32).transpose(2, 3).contiguous().transpose(2, 3),
           five.v.to(DType::f16).to(DType::f32));
  EXPECT_TRUE(same_bits(a.keys.slice(2, 0, 5), b.keys.slice(2, 0, 5)));
  EXPECT_TRUE(same_bits(a.values.slice(2, 0, 5), b.values.slice(2, 0, 5)));
}

TEST(KVCache, EmptyCacheGivesEmptyRows) {
  KVCache cache(sized(8, 4));
  const AttentionResult out = attention(randn({kBatch, 4, 2, kKeyWidth}, 1), cache);
  EXPECT_TRUE(same_bits(out.o, zeros({kBatch, 4, 2, kValueWidth})));
  EXPECT_EQ(out.lse.item({0, 0, 0}), -HUGE_VAL);
}

TEST(KVCache, BytesAreThoseOfTheMemory) {
  EXPECT_EQ(KVCache(sized(10, 0, DType::bf16)).bytes(), kBatch * kKeyHeads * 10 * (kKeyWidth + kValueWidth) * 2);
  EXPECT_EQ(KVCache(sized(10, 4, DType::i8)).bytes(),
            3 * kKeyHeads * 4 * (kKeyWidth + kValueWidth + 8) + kBatch * 3 * 4);
}

TEST(KVCache, SizesThatMakeNoCacheAreRefused) {
  const auto made = [](KVCacheOptions options) { return refusal([&] { KVCache cache(options); }); };
  KVCacheOptions o = sized(4);
  o.key_heads = 0;
  EXPECT_TRUE(contains(made(o), "the sizes make no cache"));
  o = sized(-1);
  EXPECT_TRUE(contains(made(o), "capacity -1"));
  o = sized(4);
  o.key_width = 513;
  EXPECT_TRUE(contains(made(o), "expected 1 to 512"));
  o = sized(4, 0, DType::f64);
  EXPECT_TRUE(contains(made(o), "elements of type f64"));
  for (const int64_t page : {int64_t{0}, int64_t{16}, INT64_MAX}) {
    o = sized(INT64_MAX, page);
    EXPECT_TRUE(contains(made(o), "multiply past"));
  }
  o = sized(INT32_MAX - 16);
  o.batch = INT32_MAX;
  o.key_heads = INT64_MAX / 4096;
  EXPECT_TRUE(contains(made(o), "multiply past"));
}

TEST(KVCache, TracedKeysAndValuesAreRefusedAndNothingIsWritten) {
  KVCache cache({.key_width = 4, .value_width = 4, .capacity = 8});
  const Tensor rows = randn({1, 1, 2, 4}, 1), traced = parameter(rows);
  const Tape tape;
  EXPECT_TRUE(contains(refusal([&] { cache.append(traced, rows); }), "kv_cache: an input is traced"));
  EXPECT_TRUE(contains(refusal([&] { cache.append(rows, traced); }), "expected detached inputs"));
  EXPECT_EQ(cache.lengths(), std::vector<int32_t>{0});
  cache.append(traced.detach(), rows);
  EXPECT_EQ(cache.lengths(), std::vector<int32_t>{2});
}

TEST(KVCache, RowsThatDoNotFitAreRefusedAndNothingIsWritten) {
  for (const int64_t page : {0, 4}) {
    KVCache cache(sized(page ? 24 : 8, page));
    const Rows five = rows(kBatch, 5, 1);
    cache.append(five.k, five.v);
    const auto adds = [&](const Tensor& k, const Tensor& v, const std::vector<int32_t>& sequences) {
      return refusal([&] { cache.append(k, v, sequences); });
    };
    EXPECT_NE(adds(five.k, five.v, {0, 1, 2}), "") << "past the capacity";
    EXPECT_TRUE(contains(adds(five.k, five.v, {0, 1}), "k does not fit the cache; expected (2, 2, T, 24)"));
    EXPECT_TRUE(contains(adds(five.k, five.v.slice(2, 0, 4), {0, 1, 2}), "k has 5 rows and v 4"));
    EXPECT_TRUE(
        contains(adds(five.k.slice(2, 0, 1), five.v.slice(2, 0, 1), {0, 1, 3}), "sequence 3 is not in the cache"));
    EXPECT_TRUE(contains(adds(five.k.slice(2, 0, 1), five.v.slice(2, 0, 1), {0, 1, 1}), "sequence 1 is named twice"));
    EXPECT_TRUE(contains(adds(five.k.to(DType::f64), five.v, {0, 1, 2}), "k holds f64"));
    EXPECT_TRUE(contains(adds({}, five.v, {0, 1, 2}), "k has no memory"));
    EXPECT_TRUE(contains(refusal([&] { cache.truncate(0, 6); }), "cannot be cut to 6 keys; expected 0 to 5"));
    EXPECT_TRUE(contains(refusal([&] { cache.truncate(3, 0); }), "sequence 3 is not in the cache"));
    EXPECT_TRUE(contains(refusal([&] { cache.copy(0, -1); }), "sequence -1 is not in the cache"));
    EXPECT_EQ(cache.lengths(), (std::vector<int32_t>{5, 5, 5}));
  }
}

TEST(KVCache, CallsThatDoNotFitAreRefused) {
  KVCache cache(sized(8));
  const Rows five = rows(kBatch, 5, 1);
  cache.append(five.k, five.v);
  const Tensor q = randn({kBatch, 4, 1, kKeyWidth}, 2);
  const auto with = [&](const Tensor& queries, const AttentionOptions& options = {}) {
    return refusal([&] { attention(queries, cache, options); });
  };
  EXPECT_TRUE(contains(with(randn({2, 4, 1, kKeyWidth}, 2)), "q has a batch of 2 and the cache 3 sequences"));
  EXPECT_TRUE(contains(with(randn({kBatch, 3, 1, kKeyWidth}, 2)), "2 key heads do not divide 3 query heads"));
  EXPECT_TRUE(contains(with(randn({kBatch, 4, 1, 16}, 2)), "heads of q are 16 wide and those of the cache 24"));
  EXPECT_TRUE(contains(with(q, {.dropout = {0.1f, 1}}), "dropout over a cache"));
  EXPECT_TRUE(contains(with(q, {.score_mix = HeadMix{zeros({4, 4})}}), "score mixing over a cache"));
  EXPECT_TRUE(contains(with(q, {.packed = Packed{}}), "a packed batch over a cache"));
  EXPECT_TRUE(
      contains(with(q, {.mask = lengths(tensor<int32_t>({6, 1, 1}, {3}))}), "lengths[0] is 6; expected 0 to 5"));
}

TEST(KVCache, ChosenSequencesAttendAsTheirParents) {
  for (const int64_t page : {0, 4}) {
    KVCache cache(sized(64, page));
    fill(cache);
    const Tensor q = randn({kBatch, 4, 1, kKeyWidth}, 3);
    const AttentionResult before = attention(q, cache);
    const std::vector<int32_t> parents{2, 2, 0, 2};
    cache.choose(parents);
    EXPECT_EQ(cache.lengths(), (std::vector<int32_t>{15, 15, 6, 15}));
    Tensor asked = empty({4, 4, 1, kKeyWidth});
    for (int64_t n = 0; n < 4; ++n) asked.select(0, n).copy_from(q.select(0, parents[static_cast<size_t>(n)]));
    const AttentionResult after = attention(asked, cache);
    for (int64_t n = 0; n < 4; ++n)
      EXPECT_TRUE(same_bits(after.o.select(0, n).clone(), before.o.select(0, parents[static_cast<size_t>(n)]).clone()));
    // Each grows on its own.
    const Rows more = rows(4, 1, 50);
    cache.append(more.k, more.v);
    cache.choose({1});
    EXPECT_EQ(cache.lengths(), std::vector<int32_t>{16});
    EXPECT_THROW(cache.choose({1}), Error);
    EXPECT_THROW(cache.choose({}), Error);
  }
}

}  // namespace
}  // namespace mh
