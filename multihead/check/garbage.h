// NaN, infinities and huge numbers in places that a mask drops, and what must not change a bit because of that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/check/verdict.h"

namespace mh {

struct Planted {
  CaseInputs in;
  int64_t places = 0;  // 0: the case drops nothing to plant in
  std::string where;   // "everywhere", or "in k[b, head, row]"
  // Which rows (order of lse) and keys (order of the rows of k) the garbage may reach; empty: none, and nothing else
  // either.
  std::vector<char> reached_rows, reached_keys;
};

// In every place that no kept pair reads: keys and values that all rows drop, q, d_o and d_lse of empty rows, biases of
// dropped pairs. No output may change.
Planted plant_everywhere(const AttentionCase& c, uint64_t seed);

// In one row of q, k, v or d_o that some pairs keep and others drop: what drops it must not change.
Planted plant_by_pair(const AttentionCase& c, uint64_t seed);

// One sentence per output that changed where it must not.
std::vector<std::string> judge_garbage(const Planted& planted, const CaseOutputs& clean, const CaseOutputs& dirty);

}  // namespace mh
