// Texts that come in any order leave in theirs, each as early as it can.
#include "cli/in_order.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace mh::cli {
namespace {

TEST(InOrder, PassesOnAsSoonAsAllBeforeAreThere) {
  std::string out;
  InOrder order([&](size_t number, const std::string& text) { out += std::to_string(number) + text; });
  order.put(2, "c");
  order.put(1, "b");
  EXPECT_EQ(out, "");
  order.put(0, "a");
  EXPECT_EQ(out, "0a1b2c");
  order.put(4, "e");
  EXPECT_EQ(out, "0a1b2c");
  order.put(3, "d");
  EXPECT_EQ(out, "0a1b2c3d4e");
}

TEST(InOrder, TakesTextsFromManyThreads) {
  std::vector<size_t> out;
  InOrder order([&](size_t number, const std::string&) { out.push_back(number); });
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t n = 0; n < 500; ++n) order.put(4 * (t % 2 ? 499 - n : n) + t, "");
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(out.size(), 2000u);
  for (size_t n = 0; n < out.size(); ++n) ASSERT_EQ(out[n], n);
}

TEST(InOrder, AFailureReachesWhoPut) {
  InOrder order([](size_t, const std::string&) { throw std::runtime_error("full"); });
  EXPECT_THROW(order.put(0, "a"), std::runtime_error);
  EXPECT_THROW(order.put(1, "b"), std::runtime_error);
}

}  // namespace
}  // namespace mh::cli
