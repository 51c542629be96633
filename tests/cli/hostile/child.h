// One run of the program under conditions of the test's choice.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace mh::cli {

struct Start {
  std::vector<std::string> arguments{};
  std::string folder{};                                          // where it runs
  std::vector<std::pair<std::string, std::string>> variables{};  // of the environment, over the test's own
  std::string input{};              // given on stdin, which then ends; not where `in` is a file
  std::string in{}, out{}, err{};   // files for stdin, stdout, stderr; "closed" closes one
  std::function<void()> prepare{};  // in the child; only what a signal handler may do
  int signal = 0;                   // sent once the program runs
  bool after_input = false;         // the signal, and the end of stdin, come when `input` was read
};

struct Ended {
  int code = -1;         // -1 where a signal ended it
  int signal = 0;        // that one
  bool in_time = false;  // else it was killed
  std::string out{}, err{};
  int64_t peak_bytes = 0;  // of address space; with after_input
};

Ended run_child(const Start& start);

}  // namespace mh::cli
