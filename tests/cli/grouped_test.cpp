// Large numbers as people read them.
#include "cli/grouped.h"

#include <gtest/gtest.h>

namespace mh::cli {
namespace {

TEST(Grouped, ACommaBeforeEveryThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(7577088), "7,577,088");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(-1234), "-1,234");
}

}  // namespace
}  // namespace mh::cli
