// The first signal is a wish, the second an order.
#include "cli/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace mh::cli {
namespace {

TEST(StopSignal, NotesTheFirst) {
  for (const int number : {SIGINT, SIGTERM}) {
    const StopSignal signal;
    EXPECT_FALSE(StopSignal::came());
    raise(number);
    EXPECT_TRUE(StopSignal::came());
  }
}

TEST(StopSignal, AnEchoOfTheFirstIsNoSecond) {
  const StopSignal signal;
  raise(SIGTERM);
  raise(SIGTERM);
  EXPECT_TRUE(StopSignal::came());
}

TEST(StopSignal, TheSecondEndsTheProcess) {
  const auto both = [](int first, int second) {
    const StopSignal signal;
    raise(first);
    raise(second);  // the echo of the first
    usleep(1100000);
    raise(second);
  };
  EXPECT_EXIT(both(SIGTERM, SIGTERM), testing::KilledBySignal(SIGTERM), "once more ends at once");
  EXPECT_EXIT(both(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "once more ends at once");
  EXPECT_EXIT(both(SIGTERM, SIGINT), testing::KilledBySignal(SIGINT), "once more ends at once");
}

TEST(StopSignal, LeavesNothingBehind) {
  { const StopSignal signal; }
  EXPECT_EXIT(raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace mh::cli
