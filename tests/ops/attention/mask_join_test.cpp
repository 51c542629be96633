// Masks joined with &: every two and every three pieces keep the pairs that each of them keeps, whatever their order.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "multihead/ops/attention/attention.h"

namespace mh {
namespace {

constexpr int64_t kMaskBatch = 2, kMaskQueries = 5, kMaskKeys = 7;

// What a piece says, in plain numbers: the meaning of mask.h written a second time.
struct MaskPiece {
  std::string name;
  Mask mask;
  std::string kind;  // of two of one kind, & refuses some
  std::function<bool(int64_t b, int64_t i, int64_t j, int64_t at)> keeps = [](auto, auto, auto, auto) { return true; };
  std::optional<std::vector<int64_t>> lengths{}, offsets{};
};

Tensor mask_integers(const std::vector<int32_t>& values, const Shape& shape) { return tensor<int32_t>(values, shape); }

std::vector<MaskPiece> mask_pieces() {
  const std::vector<int32_t> documents_b{1, 1, 1, 2, 2, 2, 2, 5, 5, 3, 3, 3, 5, 5},
      query_ids{1, 2, 1, 2, 2, 5, 3, 3, 5, 5};
  std::vector<bool> where;
  for (int64_t n = 0; n < kMaskBatch * kMaskQueries * kMaskKeys; ++n) where.push_back(n % 3 != 1);
  const auto is_set = [where](int64_t b, int64_t i, int64_t j) {
    return static_cast<bool>(where[static_cast<size_t>((b * kMaskQueries + i) * kMaskKeys + j)]);
  };
  const Tensor dense = tensor<bool>(where, {kMaskBatch, 1, kMaskQueries, kMaskKeys});
  const auto id = [documents_b](int64_t b, int64_t j) { return documents_b[static_cast<size_t>(b * kMaskKeys + j)]; };
  std::vector<MaskPiece> all;
  all.push_back({"causal", causal(), "causal", [](auto, auto, int64_t j, int64_t at) { return j <= at; }});
  all.push_back(
      {"window", window(2, 1), "window", [](auto, auto, int64_t j, int64_t at) { return j >= at - 2 && j <= at + 1; }});
  all.push_back({"behind", window(1, -1), "window", [](auto, auto, int64_t j, int64_t at) { return j >= at - 1; }});
  all.push_back({"prefix", prefix(4), "prefix", [](auto, auto, int64_t j, int64_t at) { return j <= at || j < 4; }});
  all.push_back({"prefixes", prefix(mask_integers({0, 5}, {2})), "prefix",
                 [](int64_t b, auto, int64_t j, int64_t at) { return j <= at || j < (b == 0 ? 0 : 5); }});
  all.push_back({"keep", keep(dense), "dense", [=](int64_t b, int64_t i, int64_t j, auto) { return is_set(b, i, j); }});
  all.push_back({"drop", drop(dense.slice(0, 0, 1)), "dense",
                 [=](auto, int64_t i, int64_t j, auto) { return !is_set(0, i, j); }});
  all.push_back(
      {"documents", documents(mask_integers(documents_b, {2, kMaskKeys})), "documents",
       [=](int64_t b, auto, int64_t j, int64_t at) { return at >= 0 && at < kMaskKeys && id(b, at) == id(b, j); }});
  all.push_back({"both documents",
                 documents(mask_integers(query_ids, {2, kMaskQueries}), mask_integers(documents_b, {2, kMaskKeys})),
                 "documents", [=](int64_t b, int64_t i, int64_t j, auto) {
                   return query_ids[static_cast<size_t>(b * kMaskQueries + i)] == id(b, j);
                 }});
  all.push_back(
      {.name = "lengths", .mask = lengths(mask_integers({7, 4}, {2})), .kind = "lengths", .lengths = {{7, 4}}});
  all.push_back(
      {.name = "shorter", .mask = lengths(mask_integers({3, 6}, {2})), .kind = "lengths", .lengths = {{3, 6}}});
  all.push_back({.name = "offset", .mask = positions(1), .kind = "offset", .offsets = {{1, 1}}});
  all.push_back(
      {.name = "offsets", .mask = positions(mask_integers({0, 3}, {2})), .kind = "offset", .offsets = {{0, 3}}});
  return all;
}

// The pairs that all of them keep, as rows of x and dots.
std::vector<std::string> expected_pairs(const std::vector<const MaskPiece*>& joined) {
  std::vector<std::string> rows;
  for (int64_t b = 0; b < kMaskBatch; ++b) {
    int64_t length = kMaskKeys;
    for (const MaskPiece* each : joined) {
      if (each->lengths) length = std::min(length, (*each->lengths)[static_cast<size_t>(b)]);
    }
    int64_t offset = length - kMaskQueries;
    for (const MaskPiece* each : joined) {
      if (each->offsets) offset = (*each->offsets)[static_cast<size_t>(b)];
    }
    for (int64_t i = 0; i < kMaskQueries; ++i) {
      rows.emplace_back();
      for (int64_t j = 0; j < kMaskKeys; ++j) {
        bool kept = j < length;
        for (const MaskPiece* each : joined) kept = kept && each->keeps(b, i, j, offset + i);
        rows.back() += kept ? 'x' : '.';
      }
    }
  }
  return rows;
}

std::vector<std::string> kept_pairs(const Mask& mask) {
  const Tensor q = randn({kMaskBatch, 1, kMaskQueries, 4}, 1), k = randn({kMaskBatch, 1, kMaskKeys, 4}, 2);
  const AttentionOptions options{.mask = mask};
  const Tensor weights = attention_weights(q, k, attention(q, k, k, options).lse, options);
  std::vector<std::string> rows;
  for (int64_t b = 0; b < kMaskBatch; ++b) {
    for (int64_t i = 0; i < kMaskQueries; ++i) {
      rows.emplace_back();
      for (int64_t j = 0; j < kMaskKeys; ++j) rows.back() += weights.item({b, 0, i, j}) > 0 ? 'x' : '.';
    }
  }
  return rows;
}

bool may_join(const MaskPiece& a, const MaskPiece& b) {
  const bool once = a.kind == "prefix" || a.kind == "documents" || a.kind == "offset";
  return a.name != b.name && !(once && a.kind == b.kind);
}

TEST(MaskJoin, EachPieceAlone) {
  for (const MaskPiece& each : mask_pieces()) EXPECT_EQ(kept_pairs(each.mask), expected_pairs({&each})) << each.name;
}

TEST(MaskJoin, EveryTwoAndEveryThreeInAnyOrder) {
  const std::vector<MaskPiece> all = mask_pieces();
  int64_t joined = 0;
  for (const MaskPiece& a : all) {
    for (const MaskPiece& b : all) {
      if (!may_join(a, b)) continue;
      EXPECT_EQ(kept_pairs(a.mask & b.mask), expected_pairs({&a, &b})) << a.name << " & " << b.name;
      ++joined;
      for (const MaskPiece& c : all) {
        if (!may_join(a, c) || !may_join(b, c)) continue;
        EXPECT_EQ(kept_pairs(a.mask & b.mask & c.mask), expected_pairs({&a, &b, &c}))
            << a.name << " & " << b.name << " & " << c.name;
        EXPECT_EQ(kept_pairs(a.mask & (b.mask & c.mask)), expected_pairs({&a, &b, &c}))
            << a.name << " & (" << b.name << " & " << c.name << ")";
        ++joined;
      }
    }
  }
  EXPECT_GT(joined, 1000);
}

}  // namespace
}  // namespace mh
