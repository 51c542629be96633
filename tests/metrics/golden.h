// What other programs computed (tests/metrics/golden), and how near a value must come to it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace mh {

inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream in(MH_TEST_DATA "/metrics/golden/" + name);
  EXPECT_TRUE(in) << name;
  return nlohmann::json::parse(in);
}

// Sums of at most some hundred products in another order: each rounds by 1.1e-16, all together by less than 1e-13.
inline void expect_same_sum(double ours, double theirs, const nlohmann::json& of) {
  EXPECT_NEAR(ours, theirs, 1e-13 * std::max(1.0, std::abs(theirs))) << of;
}

}  // namespace mh
