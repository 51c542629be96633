// The name that was probably meant.
#include "multihead/base/nearest.h"

#include <gtest/gtest.h>

namespace mh {
namespace {

TEST(Nearest, IsTheFewestEditsAway) {
  EXPECT_EQ(nearest("doctr", {"doctor", "selftest", "bench"}), "doctor");
  EXPECT_EQ(nearest("banch", {"doctor", "selftest", "bench"}), "bench");
  EXPECT_EQ(nearest("--jsn", {"--json", "--full"}), "--json");
}

TEST(Nearest, AnAbbreviationIsNear) { EXPECT_EQ(nearest("self", {"doctor", "selftest"}), "selftest"); }

TEST(Nearest, OfEqualsTheFirst) { EXPECT_EQ(nearest("bat", {"cat", "hat"}), "cat"); }

TEST(Nearest, NothingIsNearAStranger) {
  EXPECT_EQ(nearest("xyz", {"doctor", "selftest", "bench"}), std::nullopt);
  EXPECT_EQ(nearest("a", {}), std::nullopt);
}

}  // namespace
}  // namespace mh
