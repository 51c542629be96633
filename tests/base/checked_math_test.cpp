// Size arithmetic at its edges.
#include "multihead/base/checked_math.h"

#include <gtest/gtest.h>

namespace mh {
namespace {

TEST(CheckedMath, GivesTheResultWhereItFits) {
  EXPECT_EQ(checked_add(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_EQ(checked_multiply(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(checked_multiply(0, INT64_MAX), 0);
  EXPECT_EQ(add_sizes("op", -3, 5), 2);
  EXPECT_EQ(multiply_sizes("op", 6, 7), 42);
}

TEST(CheckedMath, NoticesOverflow) {
  EXPECT_EQ(checked_add(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_add(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(checked_multiply(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_multiply(INT64_MIN, -1), std::nullopt);
}

TEST(CheckedMath, RefusesWithASentence) {
  try {
    multiply_sizes("empty", INT64_MAX, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_STREQ(error.what(), "empty: the size 9223372036854775807 x 2 overflows; expected less than 2^63");
  }
  EXPECT_THROW(add_sizes("op", INT64_MAX, 1), Error);
}

}  // namespace
}  // namespace mh
