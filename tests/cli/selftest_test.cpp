// What `multihead selftest` says, and answers to the shell, of a report with failures planted.
#include "cli/verbs/selftest.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace mh::cli {
namespace {

struct Said {
  int code = -1;
  std::string out;
};

Said said_of(const SelftestReport& planted, const std::string& words) {
  CLI::App app;
  Said said;
  add_selftest(app, said.code, [&](const SelftestOptions&) { return planted; });
  testing::internal::CaptureStdout();
  app.parse(words);
  said.out = testing::internal::GetCapturedStdout();
  return said;
}

TEST(Selftest, FailuresAreExitCode1) {
  const SelftestReport report{
      .machine = "m", .rung = "r", .ran = 3, .passed = 2, .failed = 1, .failures = {"baseline case 7: off by one"}};
  for (const char* words : {"selftest", "selftest --json"}) {
    const Said said = said_of(report, words);
    EXPECT_EQ(said.code, 1) << words;
    EXPECT_NE(said.out.find("baseline case 7: off by one"), std::string::npos) << said.out;
  }
  EXPECT_NE(said_of(report, "selftest").out.find("does not compute right"), std::string::npos);
}

TEST(Selftest, NothingThatRanIsNoSuccess) {
  const Said said = said_of({.machine = "m", .rung = "r", .failures = {}}, "selftest");
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out.find("all is well"), std::string::npos) << said.out;
}

TEST(Selftest, WithoutFailuresItIs0) {
  const Said said = said_of({.machine = "m", .rung = "r", .ran = 3, .passed = 3, .failures = {}}, "selftest");
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.out.find("all is well"), std::string::npos) << said.out;
}

TEST(Selftest, TheHashIsPrintedWhole) {
  const SelftestReport report{.machine = "m", .rung = "r", .ran = 3, .passed = 3, .hash = 0xab, .failures = {}};
  EXPECT_NE(said_of(report, "selftest").out.find("hash     00000000000000ab\n"), std::string::npos);
  EXPECT_NE(said_of(report, "selftest --json").out.find(R"("hash": "00000000000000ab")"), std::string::npos);
}

TEST(Selftest, HandsTheFlagsOn) {
  CLI::App app;
  int code = -1;
  SelftestOptions got;
  add_selftest(app, code, [&](const SelftestOptions& options) {
    got = options;
    return SelftestReport{};
  });
  testing::internal::CaptureStdout();
  app.parse("selftest --full --cases 17 --rung avx2");
  testing::internal::GetCapturedStdout();
  EXPECT_TRUE(got.full);
  EXPECT_EQ(got.cases, 17);
  EXPECT_EQ(got.rung, "avx2");
}

}  // namespace
}  // namespace mh::cli
