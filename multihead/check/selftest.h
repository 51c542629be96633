// The self-test that ships: the tables of cases on every rung of this machine, judged by their references.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mh {

struct SelftestOptions {
  bool full = false;   // at least 100,000 combinations of a case of attention and a rung
  int64_t cases = 0;   // another number of cases of attention, and none of other ops; 0 for the usual
  std::string rung{};  // this one alone; empty for all that the machine can run
  std::function<void(int64_t done, int64_t total)> progress{};
};

// A combination is one case on one rung. Of attention: accuracy forward and backward, empty rows, bits for another
// number of threads, garbage in dropped places, and no composed path without score mixing. Of another op: what
// op_case.h asks.
struct SelftestReport {
  std::string machine, rung;  // rung: those that ran, lowest first
  int64_t ran = 0, passed = 0, failed = 0, skipped = 0;
  int64_t garbage = 0;  // combinations that had garbage planted
  uint64_t hash = 0;    // of the bits of every output, in order: equal for two builds that compute the same
  std::vector<std::string> failures;
};

// Leaves the rung and the number of threads as they were. Throws: invalid_argument for a rung that is unknown or that
// this machine cannot run.
SelftestReport selftest(const SelftestOptions& options = {});

}  // namespace mh
