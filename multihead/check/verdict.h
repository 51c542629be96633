// What is asked of one case: the accuracy rule against the reference, and equality of bits between runs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "multihead/check/cases/cases.h"

namespace mh {

struct CaseOutputs {
  AttentionResult result;
  AttentionGradients gradients;
};
// Forward and backward by the public ops, on the rung and threads in use.
CaseOutputs run_case(const CaseInputs& in);
// Every tensor of the outputs with its name: o, lse, dq, dk, dv, dbias0, dsink, dtau, dmix.
std::vector<std::pair<std::string, Tensor>> named_outputs(const CaseOutputs& outputs);

// A case with its inputs and what its outputs must be.
//
// The rule, per output: max error against the reference <= 1.5 (gradients: 2) times that of the plain algorithm, plus 2
// units in the last place of the largest element. The plain algorithm's error is the measured one; for gradients and
// where there are few rows, so that one run is luck, no less than the expected one (rounding.h). Empty rows are exact,
// -inf in lse too.
class JudgedCase {
 public:
  explicit JudgedCase(const AttentionCase& c);

  AttentionCase c;
  CaseInputs in;

  // One sentence per violation: output, error, bound.
  std::vector<std::string> judge(const CaseOutputs& outputs) const;
  // The largest error of an output as a share of its bound.
  double worst_share(const CaseOutputs& outputs) const;

 private:
  struct Expectation {
    std::string name;
    std::vector<double> values;
    double bound = 0;
  };
  std::vector<Expectation> expectations_;
  std::vector<char> empty_;  // in the order of lse
  void judge_empty_rows(const CaseOutputs& outputs, std::vector<std::string>& failures) const;
};

// Names of the outputs whose bits differ.
std::vector<std::string> differing(const CaseOutputs& a, const CaseOutputs& b);
// Whether two tensors have one shape, one type and the same bits.
bool same_bits(const Tensor& a, const Tensor& b);

// Continues a hash (FNV-1a, 64 bits) over the elements of a tensor, in order.
uint64_t hash_of(const Tensor& x, uint64_t before);

// One unit in the last place of x in the type.
double unit_in_last_place(DType dtype, double x);

}  // namespace mh
