// The tables of cases: plain sizes, the cost of each option, decoding, matrix products.
#include "bench/cases.h"

#include <fmt/format.h>

#include <algorithm>

namespace mh::bench {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};

Sizes square(int64_t B, int64_t H, int64_t T, int64_t D) {
  return {.B = B, .H = H, .Hkv = H, .Tq = T, .Tk = T, .Dk = D, .Dv = D};
}

// The quick table wants every type, both passes, and no row that takes long on a slow machine.
bool quick_plain(const Sizes& s, bool causal, Pass pass, int threads) {
  if (s.Dk == 128) return s.Tq == 512 && !causal && pass == Pass::forward && threads == 1;
  if (s.Dk != 64) return false;
  if (threads > 1) return s.Tq == 512 && !causal && pass == Pass::forward;
  if (causal || pass == Pass::backward) return s.Tq == 512 && causal != (pass == Pass::backward);
  return s.Tq <= 2048;
}

void add_plain(std::vector<Case>& cases, const ThreadChoice& choice) {
  const Sizes lengths[] = {square(8, 8, 32, 0), square(8, 8, 128, 0), square(4, 8, 512, 0), square(1, 8, 2048, 0),
                           square(1, 4, 4096, 0)};
  for (DType dtype : kFloats)
    for (Pass pass : {Pass::forward, Pass::backward})
      for (int64_t D : {64, 128, 32, 80})
        for (Sizes s : lengths)
          for (bool causal : {false, true})
            for (int threads : choice.counts) {
              const bool headline = s.Tq == 512 || s.Tq == 2048;
              if ((D == 32 || D == 80) && !headline) continue;
              if (threads > 1 && !choice.every_case && (!headline || D != 64)) continue;
              s.Dk = s.Dv = D;
              cases.push_back({.name = fmt::format("t{}_d{}{}", s.Tq, D, causal ? "_causal" : ""),
                               .dtype = dtype,
                               .pass = pass,
                               .sizes = s,
                               .feature = causal ? "causal" : "plain",
                               .threads = threads,
                               .quick = quick_plain(s, causal, pass, threads),
                               .comparison = {}});
            }
}

void add_cost(std::vector<Case>& cases, const Case& model, const ThreadChoice& choice) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (Pass pass : {Pass::forward, Pass::backward})
      for (int threads : choice.counts) {
        if (threads > 1 && !choice.every_case) continue;
        Case c = model;
        c.dtype = dtype;
        c.pass = pass;
        c.threads = threads;
        c.quick = model.quick && dtype == DType::f32 && pass == Pass::forward && threads == 1;
        cases.push_back(c);
      }
}

void add_costs(std::vector<Case>& cases, const ThreadChoice& choice) {
  for (const Feature& each : features()) {
    if (each.name == "plain" || each.name == "causal") continue;
    const bool structural = each.mask == "window" || each.mask == "documents";
    const Sizes s = square(1, 8, structural ? 2048 : 1024, 64);
    const bool quick =
        each.name == "dense_mask" || each.name == "alibi" || each.name == "dropout_0.1" || each.name == "window_256";
    add_cost(cases,
             {.name = each.name, .sizes = s, .feature = each.name, .quick = quick, .comparison = Comparison{s, false}},
             choice);
  }
  const auto reshaped = [&](std::string name, Sizes s, Sizes plain, bool by_time) {
    add_cost(cases, {.name = std::move(name), .sizes = s, .comparison = Comparison{plain, by_time}}, choice);
  };
  const Sizes base = square(1, 8, 1024, 64);
  for (auto [Dk, Dv] : {std::pair<int64_t, int64_t>{64, 96}, {96, 64}, {128, 64}}) {
    Sizes s = base;
    s.Dk = Dk;
    s.Dv = Dv;
    reshaped(fmt::format("dk{}_dv{}", Dk, Dv), s, base, false);
  }
  Sizes grouped = base;
  grouped.Hkv = 2;
  reshaped("grouped_8_2", grouped, base, false);
  reshaped("odd_t1000", square(1, 8, 1000, 64), base, true);
  reshaped("odd_d61", square(1, 8, 1024, 61), base, true);
  reshaped("odd_t1001_d61", square(1, 8, 1001, 61), base, true);
  reshaped("odd_t999_d97", square(1, 8, 999, 97), square(1, 8, 1024, 128), true);
}

void add_decode(std::vector<Case>& cases, const ThreadChoice& choice) {
  struct Heads {
    int64_t H, Hkv;
    std::vector<int64_t> keys;
  };
  // At width 128: 4 MiB … 256 MiB of f32.
  const Heads shapes[] = {{1, 1, {4096, 32768, 262144}}, {8, 8, {4096, 32768}}, {32, 8, {4096, 32768}}};
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8})
    for (const Heads& heads : shapes)
      for (int64_t keys : heads.keys)
        for (int threads : choice.counts) {
          const bool quick = keys <= 32768 && (threads == 1 ? heads.H == 8 && keys == 4096
                                                            : heads.H == 1 && keys == 32768 && dtype == DType::f32);
          const Sizes s{.B = 1, .H = heads.H, .Hkv = heads.Hkv, .Tq = 1, .Tk = keys, .Dk = 128, .Dv = 128};
          cases.push_back({.name = fmt::format("decode_h{}_{}_t{}", heads.H, heads.Hkv, keys),
                           .dtype = dtype,
                           .pass = Pass::decode,
                           .sizes = s,
                           .threads = threads,
                           .quick = quick,
                           .comparison = {}});
        }
}

double operations_per_pair(const Case& c) {
  const auto H = static_cast<double>(c.sizes.H), Dk = static_cast<double>(c.sizes.Dk),
             Dv = static_cast<double>(c.sizes.Dv);
  return c.pass == Pass::backward ? 2 * H * (3 * Dk + 2 * Dv) : 2 * H * (Dk + Dv);
}

}  // namespace

std::string_view name(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::backward: return "backward";
    case Pass::decode: return "decode";
    case Pass::gemm: return "gemm";
    case Pass::rows: return "rows";
  }
  return "?";
}

double operations(const Case& c) {
  if (c.pass != Pass::gemm) return feature(c.feature).kept(c.sizes) * operations_per_pair(c);
  return 2 * static_cast<double>(c.sizes.Tq) * static_cast<double>(c.sizes.Tk) * static_cast<double>(c.sizes.Dk);
}

double touched_operations(const Case& c) { return feature(c.feature).touched(c.sizes) * operations_per_pair(c); }

std::vector<Case> attention_cases(const ThreadChoice& threads) {
  std::vector<Case> cases;
  add_plain(cases, threads);
  add_costs(cases, threads);
  add_decode(cases, threads);
  return cases;
}

std::vector<Case> gemm_cases(const ThreadChoice& threads) {
  struct Product {
    int64_t M, N, K;
    bool quick;
  };
  const Product products[] = {{512, 512, 512, true},    {1024, 1024, 1024, false}, {2048, 2048, 2048, false},
                              {512, 1024, 1024, false}, {512, 4096, 1024, false},  {128, 1024, 1024, true},
                              {16, 1024, 1024, false},  {4, 1024, 1024, false},    {1, 1024, 1024, true},
                              {1, 4096, 4096, false}};
  std::vector<Case> cases;
  for (DType dtype : {DType::f32, DType::bf16})
    for (const Product& p : products)
      for (int t : threads.counts)
        cases.push_back({.name = fmt::format("gemm_{}x{}x{}", p.M, p.N, p.K),
                         .dtype = dtype,
                         .pass = Pass::gemm,
                         .sizes = {.Tq = p.M, .Tk = p.N, .Dk = p.K, .Dv = 0},
                         .threads = t,
                         .quick = p.quick && t == 1,
                         .comparison = {}});
  return cases;
}

}  // namespace mh::bench
