// The bar on a terminal, the lines elsewhere.
#include "cli/progress.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

namespace mh::cli {
namespace {

// A terminal of so many columns; `text` is all that was written to it.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    int inner = -1;
    EXPECT_EQ(openpty(&outer_, &inner, nullptr, nullptr, &size), 0);
    file_ = fdopen(inner, "w");
  }
  ~Terminal() {
    if (file_) std::fclose(file_);
    close(outer_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::FILE* file() { return file_; }
  std::string text() {
    std::fclose(file_);
    file_ = nullptr;
    std::string out;
    std::array<char, 4096> part{};
    // What was written arrives in pieces; the error behind it says that nobody can write any more.
    for (ssize_t got; (got = read(outer_, part.data(), part.size())) > 0;)
      out.append(part.data(), static_cast<size_t>(got));
    return out;
  }

 private:
  int outer_ = -1;
  std::FILE* file_ = nullptr;
};

class PlainFile {
 public:
  PlainFile() : file_(std::tmpfile()) {}
  ~PlainFile() { std::fclose(file_); }
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  std::FILE* file() { return file_; }
  std::string text() {
    std::rewind(file_);
    std::string out(65536, '\0');
    out.resize(std::fread(out.data(), 1, out.size(), file_));
    return out;
  }

 private:
  std::FILE* file_;
};

const std::string kWipe = "\r\033[K";

TEST(Progress, DrawsABarInPlaceAndTakesItAway) {
  Terminal terminal(60);
  {
    Progress progress("steps", false, terminal.file());
    progress.at(0, 10, "first");
    progress.at(10, 10, "last");
  }
  EXPECT_EQ(terminal.text(), kWipe + "[..............................] 0/10 steps  first" + kWipe +
                                 "[##############################] 10/10 steps  last" + kWipe);
}

TEST(Progress, DoesNotDrawAtEveryCall) {
  Terminal terminal(60);
  {
    Progress progress("steps", false, terminal.file());
    for (int i = 0; i < 1000; ++i) progress.at(i, 1000);
  }
  const std::string text = terminal.text();
  EXPECT_LT(std::count(text.begin(), text.end(), '['), 500 + 2);
}

TEST(Progress, RedrawsAfterAWhile) {
  Terminal terminal(60);
  {
    Progress progress("steps", false, terminal.file());
    progress.at(0, 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    progress.at(5, 10);
  }
  EXPECT_NE(terminal.text().find("[###############...............] 5/10 steps"), std::string::npos);
}

TEST(Progress, FitsTheTerminal) {
  for (const unsigned short columns : {10, 30, 45, 80}) {
    Terminal terminal(columns);
    {
      Progress progress("steps", false, terminal.file());
      progress.at(500, 1000, "loss 2.345  12,345 tokens/s");
    }
    const std::string text = terminal.text();
    const std::string line = text.substr(kWipe.size(), text.size() - 2 * kWipe.size());
    EXPECT_LT(line.size(), columns);
    EXPECT_EQ(line.front(), '[');
  }
}

TEST(Progress, ALineStandsAboveTheBar) {
  Terminal terminal(60);
  {
    Progress progress("steps", false, terminal.file());
    progress.at(1, 2);
    progress.say("validation");
    progress.at(1, 2);
  }
  const std::string bar = kWipe + "[###############...............] 1/2 steps  ";
  EXPECT_EQ(terminal.text(), bar + kWipe + "validation\r\n" + bar + kWipe);
}

TEST(Progress, IsPlainLinesElsewhere) {
  PlainFile file;
  {
    Progress progress("steps", false, file.file());
    progress.at(0, 10, "loss 9");
    progress.at(5, 10, "too soon");
    progress.say("validation");
    progress.at(10, 10);
  }
  EXPECT_EQ(file.text(), "0 of 10 steps: loss 9\nvalidation\n10 of 10 steps\n");
}

TEST(Progress, QuietShowsNothing) {
  PlainFile file;
  {
    Progress progress("steps", true, file.file());
    progress.at(0, 10);
    progress.say("validation");
  }
  EXPECT_EQ(file.text(), "");
}

TEST(Progress, TimesReadAsClocksDo) {
  EXPECT_EQ(time_text(7.9), "0:07");
  EXPECT_EQ(time_text(754), "12:34");
  EXPECT_EQ(time_text(3723), "1:02:03");
  EXPECT_EQ(time_text(86400 + 59), "1 d 0:00:59");
  EXPECT_EQ(time_text(NAN), "?");
  EXPECT_EQ(time_text(INFINITY), "?");
  EXPECT_EQ(time_text(-1), "?");
}

TEST(Progress, AFullStreamIsNoReasonToFail) {
  for (const char* path : {"/dev/full", "/dev/null"}) {
    std::FILE* const out = std::fopen(path, std::string(path) == "/dev/null" ? "r" : "w");  // one that takes no writes
    ASSERT_NE(out, nullptr);
    {
      Progress progress("rows", false, out);
      EXPECT_NO_THROW(progress.at(0, 2));
      EXPECT_NO_THROW(progress.say("half"));
      EXPECT_NO_THROW(progress.at(2, 2));
    }
    std::fclose(out);
  }
}

}  // namespace
}  // namespace mh::cli
