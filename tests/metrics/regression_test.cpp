// Mean squared error and correlations: the figures of scikit-learn and SciPy.
#include "multihead/metrics/regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

using Numbers = std::vector<double>;

void expect_correlation(double ours, const nlohmann::json& theirs, const nlohmann::json& row) {
  if (theirs.is_null()) {
    EXPECT_TRUE(std::isnan(ours)) << row;
  } else {
    expect_same_sum(ours, theirs.get<double>(), row);
  }
}

TEST(Regression, IsSciPys) {
  const nlohmann::json rows = golden_json("regression.json");
  ASSERT_GE(rows.size(), 13u);
  for (const nlohmann::json& row : rows) {
    const Numbers predictions = row.at("predictions"), references = row.at("references");
    expect_correlation(pearson_correlation(predictions, references), row.at("pearson"), row);
    expect_correlation(spearman_correlation(predictions, references), row.at("spearman"), row);
    if (!row.at("mse").is_null())
      expect_same_sum(mean_squared_error(predictions, references), row.at("mse").get<double>(), row);
  }
}

TEST(Regression, NaNMakesCorrelationsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(pearson_correlation(Numbers{1, nan, 3}, Numbers{1, 2, 3})));
  EXPECT_TRUE(std::isnan(spearman_correlation(Numbers{1, 2, 3}, Numbers{nan, 2, 3})));
}

TEST(Regression, RefusesWhatHasNoScore) {
  EXPECT_TRUE(refusal_of([] { mean_squared_error({}, {}); }).says("0 predictions; expected at least 1"));
  EXPECT_TRUE(refusal_of([] { mean_squared_error(Numbers{1}, {}); }).says("1 predictions and 0 references"));
  EXPECT_TRUE(refusal_of([] { pearson_correlation(Numbers{1}, Numbers{1}); }).says("expected at least 2"));
  EXPECT_TRUE(refusal_of([] {
                spearman_correlation(Numbers{1, 2}, Numbers{1});
              }).says("2 predictions and 1 references"));
}

TEST(Regression, MeanAbsoluteErrorIsTheMeanDistance) {
  const std::vector<double> said{1, -2, 4}, right{2, 1, 4};
  EXPECT_DOUBLE_EQ(mean_absolute_error(said, right), 4.0 / 3);
  EXPECT_THROW(mean_absolute_error(said, std::vector<double>{1}), Error);
  EXPECT_THROW(mean_absolute_error({}, {}), Error);
}

}  // namespace
}  // namespace mh
