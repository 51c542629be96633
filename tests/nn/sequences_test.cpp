// Boundaries and positions of ragged batches.
#include "multihead/nn/sequences.h"

#include <gtest/gtest.h>

#include "tests/harness/refusal.h"

namespace mh {
namespace {

std::vector<int32_t> numbers(const Tensor& x) { return {x.data<int32_t>(), x.data<int32_t>() + x.count()}; }

TEST(Sequences, StartsAndPositionsFollowTheLengths) {
  const Sequences at = Sequences::of_lengths({3, 0, 2});
  EXPECT_EQ(at.count(), 3);
  EXPECT_EQ(at.rows, 5);
  EXPECT_EQ(at.longest, 3);
  EXPECT_EQ(numbers(at.starts), (std::vector<int32_t>{0, 3, 3, 5}));
  EXPECT_EQ(numbers(at.positions), (std::vector<int32_t>{0, 1, 2, 0, 1}));
  const Sequences none = Sequences::of_lengths({});
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.rows, 0);
  EXPECT_EQ(numbers(Sequences::uniform(2, 2).positions), (std::vector<int32_t>{0, 1, 0, 1}));
}

TEST(Sequences, RefusesLengthsThatAreNone) {
  EXPECT_EQ(refusal_of([] {
              Sequences::of_lengths({1, -1});
            }).sentence,
            "sequences: length -1 of sequence 1 is negative; expected 0 or more");
  EXPECT_EQ(refusal_of([] {
              Sequences::of_lengths({1, 2147483647});
            }).sentence,
            "sequences: 1 rows and 2147483647 more of sequence 1; expected fewer than 2^31");
  for (const int64_t length : {(int64_t{1} << 32) + 3, INT64_MAX}) {
    EXPECT_TRUE(refusal_of([&] {
                  Sequences::of_lengths({2, length});
                }).says(fmt::format("and {} more of sequence 1", length)));
    EXPECT_TRUE(refusal_of([&] { Sequences::uniform(2, length); }).says("expected fewer than 2^31"));
    EXPECT_TRUE(refusal_of([&] { Sequences::uniform(length, 0); }).says("expected 0 or more, and fewer than 2^31"));
  }
  EXPECT_TRUE(refusal_of([] { Sequences::uniform(-1, 3); }).says("sequences: -1 sequences; expected 0 or more"));
}

}  // namespace
}  // namespace mh
