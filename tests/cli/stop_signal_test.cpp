// The first signal is a wish, the second an order.
#include "cli/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace mh::cli {
namespace {

TEST(StopSignal, NotesTheFirst) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const StopSignal signal;
    StopSignal::work_begins();
    EXPECT_FALSE(StopSignal::came());
    raise(number);
    EXPECT_TRUE(StopSignal::came());
  }
}

TEST(StopSignal, EndsTheProcessWhileThereIsNothingToSave) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const auto early = [&] {
      const StopSignal signal;
      raise(number);
    };
    EXPECT_EXIT(early(), testing::ExitedWithCode(3), "stopped before the first step; there was nothing to save");
  }
}

TEST(StopSignal, AnEchoOfTheFirstIsNoSecond) {
  const StopSignal signal;
  StopSignal::work_begins();
  raise(SIGTERM);
  raise(SIGTERM);
  EXPECT_TRUE(StopSignal::came());
}

TEST(StopSignal, TheSecondEndsTheProcess) {
  const auto both = [](int first, int second) {
    const StopSignal signal;
    StopSignal::work_begins();
    raise(first);
    raise(second);  // the echo of the first
    usleep(1100000);
    raise(second);
  };
  EXPECT_EXIT(both(SIGTERM, SIGTERM), testing::KilledBySignal(SIGTERM), "once more ends at once");
  EXPECT_EXIT(both(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "once more ends at once");
  EXPECT_EXIT(both(SIGTERM, SIGHUP), testing::KilledBySignal(SIGHUP), "once more ends at once");
}

TEST(StopSignal, LinesToAReaderThatIsGoneDoNotEndTheProcess) {
  const auto writing = [] {
    const StopSignal signal;
    StopSignal::work_begins();
    raise(SIGPIPE);
    usleep(1100000);
    raise(SIGPIPE);
    _exit(StopSignal::came() ? 0 : 1);
  };
  EXPECT_EXIT(writing(), testing::ExitedWithCode(0), "");
}

TEST(StopSignal, WhatWasIgnoredStaysIgnored) {
  const auto under_nohup = [] {
    signal(SIGHUP, SIG_IGN);
    const StopSignal stop;
    StopSignal::work_begins();
    raise(SIGHUP);
    _exit(StopSignal::came() ? 1 : 0);
  };
  EXPECT_EXIT(under_nohup(), testing::ExitedWithCode(0), "");
}

TEST(StopSignal, AReaderThatIsGoneIsNotedWhereWritesWouldOnlyFail) {
  const auto ignoring = [] {
    signal(SIGPIPE, SIG_IGN);
    const StopSignal stop;
    StopSignal::work_begins();
    raise(SIGPIPE);
    _exit(StopSignal::came() ? 0 : 1);
  };
  EXPECT_EXIT(ignoring(), testing::ExitedWithCode(0), "");
}

TEST(StopSignal, LeavesNothingBehind) {
  { const StopSignal signal; }
  EXPECT_EXIT(raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(raise(SIGHUP), testing::KilledBySignal(SIGHUP), "");
}

}  // namespace
}  // namespace mh::cli
