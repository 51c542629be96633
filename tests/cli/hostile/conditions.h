// The table of hostile conditions: what is done to a run, and what must come of it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/cli/hostile/child.h"
#include "tests/cli/hostile/samples.h"

namespace mh::cli {

struct Expected {
  std::set<int> codes{};
  std::string part{};      // of the one sentence, where it fails
  bool same_out = false;   // stdout is that of a plain run, where that is repeatable
  bool same_made = true;   // the file it writes is that of a plain run
  bool speaks = true;      // where it fails, one sentence stands on stderr
  bool or_signal = false;  // or the signal that was sent ended it
};

struct Condition {
  std::string name{};
  // Makes `start`, a quiet run of the sample in a folder of its own, hostile; `plain` is how it ends unharmed.
  std::function<Expected(const Sample& sample, const Ended& plain, Start& start)> change{};
  // Whether there is such a thing for this verb; unset: always.
  std::function<bool(const Sample&)> applies{};
};

// Streams, signals, threads, locales, wrong words: for every verb.
std::vector<Condition> general_conditions();
// Too little memory, by bytes of address space.
std::vector<Condition> memory_conditions(int64_t least_bytes);
// What may lie where a file to be read is expected, for every file of the sample.
std::vector<Condition> input_conditions(const Sample& sample);
// Where an output may be told to go.
std::vector<Condition> output_conditions(const Sample& sample);

// What is wrong with how it ended; empty where nothing is.
std::string verdict(const Sample& sample, const Start& start, const Expected& expected, const Ended& plain,
                    const Ended& ended);

}  // namespace mh::cli
