// A command line for every verb, on files that are made once: what the table of hostile conditions runs.
#pragma once

#include <string>
#include <vector>

namespace mh::cli {

struct Sample {
  std::string command{};                // as `multihead reference flags` names it: "bench attention"
  std::vector<std::string> flags{};     // relative to the folder of make_inputs
  std::string output_flag{}, output{};  // "--out", "made.json"; empty where it writes none
  std::vector<std::string> files{};     // that it reads: all of them are needed
  std::vector<std::string> texts{};     // those among `files` that any text will do for
  std::string input{};                  // on stdin; empty where it reads none
  bool repeatable = true;               // prints the same every time
  bool needs_thread = false;            // cannot do with the program's first thread alone
  std::string brief{};                  // a flag that ends a run soon, before it writes; not where the output is told

  // The command's words and its flags, written to `out` instead of `output` where that is not empty.
  std::vector<std::string> words(const std::string& out = "") const;
};

const std::vector<Sample>& samples();

// Writes all the files that samples read into the folder.
void make_inputs(const std::string& folder);

}  // namespace mh::cli
