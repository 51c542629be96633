// What the benchmarks measure: sizes, the options of the call, and how its work is counted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/ops/attention/attention.h"

namespace mh::bench {

enum class Pass { forward, backward, decode, gemm, rows };
std::string_view name(Pass pass);

// For a matrix product (M, K) · (K, N): Tq = M, Tk = N, Dk = K, the others 1 and Dv 0. For rows (R, C): Tq = R, Dk = C.
struct Sizes {
  int64_t B = 1, H = 1, Hkv = 1, Tq = 1, Tk = 1, Dk = 64, Dv = 64;
};

// One option of attention: how to ask for it, and the pairs it keeps of the B · Tq · Tk there are.
struct Feature {
  std::string name;           // in names of cases; "plain" where nothing is asked for
  std::string mask = "none";  // none, causal, dense, lengths, window, documents
  std::function<AttentionOptions(const Sizes&, DType)> options;
  std::function<double(const Sizes&)> kept;
  std::function<double(const Sizes&)> touched;  // pairs of the 64 x 64 tiles that hold a kept one
};
const std::vector<Feature>& features();
const Feature& feature(std::string_view name);

// The plain call that stands beside a case with an option; compared by time, or by time per operation.
struct Comparison {
  Sizes plain;
  bool by_time = false;
};

struct Case {
  std::string name;
  DType dtype = DType::f32;  // decode: of the cache
  Pass pass = Pass::forward;
  Sizes sizes;
  std::string feature = "plain";
  int threads = 1;
  bool quick = false;
  std::optional<Comparison> comparison;
};

// Floating-point operations: 2·(Dk + Dv) a kept pair forward, 2·(3·Dk + 2·Dv) backward; causal keeps half of all pairs.
double operations(const Case& c);
// The same for the pairs of touched tiles: what a mask that skips tiles must cost in proportion to.
double touched_operations(const Case& c);

// Numbers of threads to measure with. Unless every case is wanted with each, more than one thread is for the few cases
// that tell how the work scales.
struct ThreadChoice {
  std::vector<int> counts{1};
  bool every_case = false;
};
std::vector<Case> attention_cases(const ThreadChoice& threads);
std::vector<Case> gemm_cases(const ThreadChoice& threads);
std::vector<Case> rows_cases(const ThreadChoice& threads);

}  // namespace mh::bench
