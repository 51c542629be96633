// Runs the program and catches what it prints.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#ifndef MH_PROGRAM
#define MH_PROGRAM ""
#endif

namespace mh::cli {

struct Ran {
  int code = -1;
  std::string out;
};

inline std::string in_quotes(const std::string& text) { return "'" + text + "'"; }

// stdout of the command line; with `both`, stderr too. `before` stands in front: "MH_THREADS=1".
inline Ran run(const std::string& arguments, bool both = false, const std::string& before = "") {
  const std::string command =
      before + " " + in_quotes(MH_PROGRAM) + " " + arguments + (both ? " 2>&1" : " 2>/dev/null");
  Ran ran;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return ran;
  std::array<char, 4096> buffer{};
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) ran.out.append(buffer.data(), n);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

class Program : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(MH_PROGRAM).empty()) GTEST_SKIP() << "built without the program";
  }
};

}  // namespace mh::cli
