// A standalone look at the AMX rung on a machine that has it: the peak, the state of the unit,
// forward, backward and matrix products as fractions of it.
// Trials of all cases are interleaved; each stands between two probes and two runs of the peak, on thread CPU time.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/cpu/amx_detect.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/attention.h"
#include "multihead/ops/matmul.h"
#include "multihead/tensor/tensor.h"

namespace {

using namespace mh;

double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Runs a limit loop; its work per second.
double rate(const kernels::Kernel<kernels::LimitArgs>& loop, int64_t rounds) {
  double work = 0;
  const double start = seconds();
  loop({.rounds = rounds, .work = &work});
  return work / (seconds() - start);
}

// Nanoseconds of a tile product with its loads: about 7 in the fast state of a Sapphire Rapids, 22 … 25 in the slow one.
constexpr double kFastBelow = 9, kSlowAbove = 14;
double probe() { return 1e9 / rate(kernels::cpu().tile_probe, 500); }
double peak() { return rate(kernels::cpu().tile_peak, 20000); }

enum class State { fast, slow, between };
State state_of(double before, double after) {
  if (std::max(before, after) < kFastBelow) return State::fast;
  return std::min(before, after) > kSlowAbove ? State::slow : State::between;
}

struct Trial {
  double fraction, rate;
  State state;
};

struct Case {
  std::string name;
  double flops;
  std::function<void()> run;
  std::vector<Trial> trials{};
};

Tensor random(const Shape& shape, uint32_t seed) {
  Tensor x = empty(shape, DType::bf16);
  bf16* at = x.view().as<bf16>();
  for (int64_t n = 0; n < x.count(); ++n) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      seed = seed * 1664525u + 1013904223u;
      sum += static_cast<float>(seed >> 8) * 0x1p-24f - 0.5f;
    }
    at[n] = bf16(sum * 1.73f);
  }
  return x;
}

void add_attention(std::vector<Case>& cases, int64_t B, int64_t H, int64_t T, int64_t D, bool causal, bool backward) {
  const Shape shape{B, H, T, D};
  AttentionOptions options;
  if (causal) options.mask = mh::causal();
  const Tensor q = random(shape, 1), k = random(shape, 2), v = random(shape, 3), d_o = random(shape, 4);
  const AttentionResult out = attention(q, k, v, options);
  const double pairs = static_cast<double>(B * H) * static_cast<double>(T) * static_cast<double>(causal ? T + 1 : 2 * T) / 2;
  char name[96];
  snprintf(name, sizeof name, "%s B%ld H%ld T%ld D%ld%s", backward ? "backward" : "forward ", B, H, T, D, causal ? " causal" : "");
  const double flops = (backward ? 10.0 : 4.0) * pairs * static_cast<double>(D);
  if (!backward) {
    cases.push_back({name, flops, [=] { attention_into(out, q, k, v, options); }});
    return;
  }
  const AttentionGradients gradients{.dq = empty_like(q), .dk = empty_like(k), .dv = empty_like(v)};
  cases.push_back({name, flops, [=] { attention_backward_into(gradients, {q, k, v, out}, {.d_o = d_o}, options); }});
}

void add_matmul(std::vector<Case>& cases, int64_t M, int64_t N, int64_t K) {
  const Tensor a = random({M, K}, 5);
  const PackedWeights w = prepack(random({K, N}, 6));
  char name[96];
  snprintf(name, sizeof name, "matmul M%ld N%ld K%ld, packed", M, N, K);
  cases.push_back({name, 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K), [=] { matmul(a, w); }});
}

double percentile(std::vector<double> x, double p) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  return x[static_cast<size_t>(p * static_cast<double>(x.size() - 1))];
}

void run_once(Case& c) {
  const double peak_before = peak(), probe_before = probe();
  const double start = seconds();
  int64_t rounds = 0;
  double taken = 0;
  do {
    c.run();
    ++rounds;
    taken = seconds() - start;
  } while (taken < 0.002);
  const double probe_after = probe(), peak_after = peak();
  const double done = c.flops * static_cast<double>(rounds) / taken;
  c.trials.push_back({2 * done / (peak_before + peak_after), done, state_of(probe_before, probe_after)});
}

void print(const Case& c) {
  std::vector<double> all, fast, slow, rates;
  for (const Trial& t : c.trials) {
    all.push_back(t.fraction);
    rates.push_back(t.rate);
    if (t.state == State::fast) fast.push_back(t.fraction);
    if (t.state == State::slow) slow.push_back(t.rate * 1e-9);
  }
  printf("%-36s %6.0f GF  of peak: median %.3f p90 %.3f | fast median %.3f p90 %.3f (n %zu) | slow %4.0f GF (n %zu)\n", c.name.c_str(),
         percentile(rates, 0.5) * 1e-9, percentile(all, 0.5), percentile(all, 0.9), percentile(fast, 0.5), percentile(fast, 0.9), fast.size(),
         percentile(slow, 0.5), slow.size());
}

}  // namespace

int main(int count, char** words) {
  const double budget = count > 1 ? std::atof(words[1]) : 60;
  if (const char* missing = kernels::amx_missing()) {
    printf("no AMX: %s\n", missing);
    return 1;
  }
  kernels::use_rung(kernels::Rung::amx);
  set_threads(1);
  std::vector<double> peaks, probes;
  for (int n = 0; n < 200; ++n) peaks.push_back(peak()), probes.push_back(probe());
  printf("tile peak on real data: median %.0f GF, p90 %.0f GF; probe %.1f / %.1f / %.1f ns (p10 / median / p90)\n", percentile(peaks, 0.5) * 1e-9,
         percentile(peaks, 0.9) * 1e-9, percentile(probes, 0.1), percentile(probes, 0.5), percentile(probes, 0.9));

  std::vector<Case> cases;
  for (const int64_t D : {64, 128}) {
    for (const bool backward : {false, true}) {
      for (const bool causal : {false, true}) add_attention(cases, 1, 2, 2048, D, causal, backward);
      add_attention(cases, 1, 4, 512, D, false, backward);
    }
  }
  add_attention(cases, 4, 16, 128, 64, false, false);
  add_attention(cases, 1, 1, 8192, 64, false, false);
  add_attention(cases, 1, 2, 2048, 80, false, false);
  for (const int64_t size : {512, 1024, 2048}) add_matmul(cases, size, size, size);
  for (Case& c : cases) c.run();
  const auto wall = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  for (const double start = wall(); wall() - start < budget;)
    for (Case& c : cases) run_once(c);
  for (const Case& c : cases) print(c);
  return 0;
}
