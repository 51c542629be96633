// Measures cases, one after the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/report.h"

namespace mh::bench {

struct Selection {
  bool quick = false;
  std::vector<std::string> dtypes, passes;  // empty: all
  std::vector<std::string> names;           // parts of names of cases; empty: all
  std::vector<int> threads;                 // empty: all
  double seconds = 0;                       // per row; 0: 0.5, or 0.1 quick
};

std::vector<Case> select(const std::vector<Case>& cases, const Selection& selection);

// Runs them in order; `on_row` hears of each row (null before the first), and how many are done.
// The number of threads in use is put back at the end.
Report run(const std::vector<Case>& cases, const Selection& selection,
           const std::function<void(const Row* row, size_t done)>& on_row);

// One case, made ready: what to run, against what.
struct Prepared {
  Subject subject;
  Reference reference;
  std::string unit;
};
Prepared prepare_attention(const Case& c);
Prepared prepare_decode(const Case& c);
Prepared prepare_gemm(const Case& c);
Prepared prepare_rows(const Case& c);

}  // namespace mh::bench
