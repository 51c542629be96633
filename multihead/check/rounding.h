// How far the plain algorithm is expected to err: its roundings followed to first order.
#pragma once

#include <vector>

#include "multihead/check/cases/cases.h"

namespace mh {

// What one run of the plain algorithm errs by is luck where an output is a handful of numbers, each a long sum: dsink,
// dtau, a table of buckets; or where the exact gradient is 0. Here every rounding of S, P, dP and dS counts with its
// unit roundoff and independent ones add in squares. One standard deviation, the largest over the elements of an
// output.
struct ExpectedErrors {
  double o = 0, lse = 0, dq = 0, dk = 0, dv = 0, dsink = 0, dtau = 0, dmix = 0;
  std::vector<double> dbias;
};
ExpectedErrors expected_errors(const CaseInputs& in);

}  // namespace mh
