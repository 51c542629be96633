// One case of an op, and the verdicts made of it: value, gradient, agreement of threads and of layouts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

using Numbers = std::vector<double>;

// One input: N(centre, spread²) from the case's seed.
struct OpInput {
  Shape shape;
  double centre = 0, spread = 1;
  bool parameter = false;  // f32 whatever the type under test, with values of that type
};

std::vector<DType> float_types();  // f32, bf16, f16

// An op on some inputs beside the same in double precision, as plainly as it can be written. Whole numbers that are no
// inputs of a derivative (targets, positions) are part of both functions.
struct OpCase {
  std::string label;
  std::vector<OpInput> inputs;
  std::function<Tensor(const std::vector<Tensor>& x)> op;
  std::function<Numbers(const std::vector<Numbers>& x)> reference;
  std::vector<DType> types = float_types();
  // The longest sum in it, forward or backward.
  int64_t terms = 1;
};

struct OpOutputs {
  Tensor y;
  std::vector<Tensor> gradients;  // of Σ c · y; empty where none came
};

// A case in one type, with its inputs drawn and what must come out of them.
//
// Gradients of the reference are its own differences, by five points in f64; two widths of them must agree to 1e-6 of
// the largest. The rule for the op: its result is the exact one of inputs a few roundings away. So the bound is how far
// the reference moves, at most over some draws, when every input and every c is changed by a random part of
// (2 + √terms) units roundoff of f32 (derivatives also by two of the type under test, in which results are kept for the
// way back), plus two units in the last place of the largest element, in the type of the output.
class JudgedOp {
 public:
  JudgedOp(const OpCase& of, DType type);

  std::string label;
  // Forward and backward on the rung and threads in use; with `strided`, of inputs that no axis of is contiguous.
  OpOutputs run(bool strided = false) const;
  // The same on another device; the outputs come back to the CPU.
  OpOutputs run_on(Device device) const;
  // One sentence per violation.
  std::vector<std::string> judge(const OpOutputs& got) const;

 private:
  struct Expectation {
    std::string name;
    std::vector<int64_t> at;  // elements that are looked at
    Numbers values;
    double bound = 0;
  };
  void expect(const OpCase& of, DType type);
  OpOutputs run_with(std::vector<Tensor> x, const Tensor& c) const;

  std::function<Tensor(const std::vector<Tensor>& x)> op_;
  std::vector<Tensor> inputs_;
  Tensor c_;
  std::vector<Expectation> expectations_;  // y, then the gradient of each input
  std::vector<std::string> doubts_;        // about the reference itself
};

// Names of the outputs whose bits differ.
std::vector<std::string> differing(const OpOutputs& a, const OpOutputs& b);

// Every case in each of its types.
std::vector<JudgedOp> judged_ops(const std::vector<OpCase>& cases);

// Everything asked of them on the rung in use: accuracy, bits for 1, 2, 3 and 7 threads, bits for strided inputs. One
// list for each, with one sentence per violation. Leaves the number of threads as it was.
std::vector<std::vector<std::string>> examine(const std::vector<JudgedOp>& judged);

// The tables, one per family of ops.
std::vector<OpCase> norm_cases();
std::vector<OpCase> softmax_cases();
std::vector<OpCase> embedding_cases();
std::vector<OpCase> dropout_cases();
std::vector<OpCase> activation_cases();
std::vector<OpCase> elementwise_cases();
std::vector<OpCase> shape_cases();
std::vector<OpCase> rope_cases();
std::vector<OpCase> recurrent_cases();
std::vector<std::vector<OpCase>> op_families();  // all of them

}  // namespace mh
