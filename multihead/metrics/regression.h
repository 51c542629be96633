// How well numbers were predicted: mean squared and absolute error, Pearson's and Spearman's correlation.
//
//   MSE      = 1/n Σ (x_i - y_i)²
//   MAE      = 1/n Σ |x_i - y_i|
//   Pearson  = Σ (x_i - x̄)(y_i - ȳ) / sqrt(Σ (x_i - x̄)² Σ (y_i - ȳ)²)
//   Spearman = Pearson of the ranks; equal values share the mean of their ranks
//
// The correlations are SciPy's: NaN where all values of one side are equal, and where a value is NaN.
#pragma once

#include <span>

namespace mh {

// Throws: invalid_argument where the lists are empty or differ in length.
double mean_squared_error(std::span<const double> predictions, std::span<const double> references);
double mean_absolute_error(std::span<const double> predictions, std::span<const double> references);

// From -1 to 1. Throws: invalid_argument where the lists differ in length or have fewer than 2 values.
double pearson_correlation(std::span<const double> predictions, std::span<const double> references);
double spearman_correlation(std::span<const double> predictions, std::span<const double> references);

}  // namespace mh
