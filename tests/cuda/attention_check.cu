// Checks the attention kernels on a GPU against double precision.
// usage: attention_check shapes | forward SHAPE | backward SHAPE | options COUNT SEED [SECONDS] | repeat COUNT | batch
// | calm | decode | small
#include <chrono>
#include <string>

#include "tests/cuda/problem.h"

namespace mh::kernels::cuda {
namespace {

std::atomic<int> failures{0}, checks{0};
std::atomic<double> worst[3][2];  // shares of the bound, by type, forward and backward

std::string text(const Setup& s) {
  static const char* types[] = {"f32", "bf16", "f16"};
  static const char* kinds[] = {"dot", "cosine", "euclidean"};
  char line[400];
  std::snprintf(
      line, sizeof line,
      "%s B%d H%d/%d Tq%d Tk%d Dk%d Dv%d%s%s%s behind %d ahead %d prefix %d%s%s%s%s%s%s%s%s bias %d cap %g drop %g loud %g %s%s%s",
      types[static_cast<int>(s.type)], s.B, s.H, s.Hkv, s.Tq, s.Tk, s.Dk, s.Dv, s.rows_first ? " bthd" : "",
      s.packed ? " packed" : "", s.lengths ? " lengths" : "", s.behind == kFar ? -1 : s.behind,
      s.ahead == kFar ? -1 : s.ahead, s.prefix, s.top_left ? " top-left" : "", s.documents ? " documents" : "",
      s.keep ? " keep" : "", s.sink ? " sink" : "", s.relative ? " relative" : "", s.slopes ? " slopes" : "",
      s.paged ? " paged" : "", s.quantized ? " i8" : "", s.bias, s.cap, s.drop, s.loud,
      kinds[static_cast<int>(s.likeness)], s.garbage ? " garbage" : "", s.d_lse ? " d_lse" : "");
  return line;
}

// By the accuracy rule. What must not be finite only has to be so too; an lse of -inf has to be -inf. Dropout drops
// elements, not pairs: garbage behind one of them may or may not reach the rows and keys that keep it.
bool close(const Problem& p, const char* name, const std::vector<double>& got, std::atomic<double>& seen) {
  const Expectation& e = p.expected.at(name);
  double far = 0, largest = 0;
  int64_t odd = 0;
  const bool is_lse = name == std::string("lse");
  for (size_t n = 0; n < e.values.size(); ++n) {
    const double want = e.values[n];
    if (std::isfinite(want)) {
      odd += !std::isfinite(got[n]);
      if (std::isfinite(got[n])) far = std::max(far, std::abs(got[n] - want));
      largest = std::max(largest, std::abs(want));
    } else if (is_lse && want == -INFINITY) {
      odd += got[n] != want;
    } else if (p.call.options.dropout_threshold == 0) {
      odd += std::isfinite(got[n]);
    }
  }
  for (double before = seen; before < far / e.bound && !seen.compare_exchange_weak(before, far / e.bound);) {
  }
  ++checks;
  if (odd == 0 && far <= e.bound) return true;
  ++failures;
  say("FAIL %s: error %.2e over the bound %.2e, largest %.2e, %lld wrongly finite or not\n", name, far, e.bound,
      largest, static_cast<long long>(odd));
  return false;
}

std::vector<double> widened(const std::vector<float>& x) { return {x.begin(), x.end()}; }

bool verify_forward(const Problem& p) {
  const Setup& s = p.setup;
  std::atomic<double>& seen = worst[static_cast<int>(s.type)][0];
  const int64_t rows = static_cast<int64_t>(s.B) * s.H * s.Tq;
  bool ok = close(p, "o", p.read(p.call.o, false, s.Dv), seen);
  const std::vector<float> lse =
      p.read(static_cast<const float*>(p.call.lse.data), static_cast<int64_t>(p.call.batch) * s.H * p.call.q_rows);
  std::vector<double> got = p.expected.at("lse").values;  // rows past the end have none
  for (int64_t n = 0; n < rows; ++n) {
    const int b = static_cast<int>(n / s.Tq / s.H), h = static_cast<int>(n / s.Tq % s.H),
              i = static_cast<int>(n % s.Tq);
    const Span& span = p.spans[b];
    if (i < span.q_len) got[n] = lse[p.call.lse.at(span.batch, h, span.q_begin + i)];
  }
  return close(p, "lse", got, seen) && ok;
}

bool verify_backward(const Problem& p) {
  const Setup& s = p.setup;
  const Call& c = p.call;
  std::atomic<double>& seen = worst[static_cast<int>(s.type)][1];
  bool ok = close(p, "dq", p.read(c.dq, false, s.Dk), seen);
  ok &= close(p, "dk", p.read(c.dk, true, s.Dk), seen);
  ok &= close(p, "dv", p.read(c.dv, true, s.Dv), seen);
  auto flat = [&](const char* name, const void* data) {
    if (data)
      ok &= close(p, name, widened(p.read(static_cast<const float*>(data), p.expected.at(name).values.size())), seen);
  };
  flat("dsink", c.dsink);
  flat("dscale", c.dscale);
  flat("dbias", c.dbias.data);
  flat("drelative", c.drelative);
  return ok;
}

// Forward and backward of one problem by one route, against the answer.
bool verify(Problem& p, Route route, const char* name) {
  p.poison_outputs();
  must(attention_forward(p.call, p.workspace, cudaStreamPerThread, route), "attention_forward");
  finish((std::string(name) + " forward of " + text(p.setup)));
  bool ok = verify_forward(p);
  if (!p.forward_only()) {
    must(attention_backward(p.call, p.workspace, cudaStreamPerThread, route), "attention_backward");
    finish((std::string(name) + " backward of " + text(p.setup)));
    ok &= verify_backward(p);
  }
  if (!ok) say("  in %s, %s\n", name, text(p.setup).c_str());
  return ok;
}

// Cases that meet every edge of a tile: lengths around it, one key, more rows than keys, groups, window, prefix,
// growing scores.
std::vector<Setup> tile_cases(Element type, int D, bool masked, bool options = false) {
  std::vector<Setup> cases;
  for (const auto& [Tq, Tk] : {std::pair{128, 128}, {1, 1}, {333, 777}, {777, 333}, {500, 500}, {64, 300}}) {
    Setup s{.type = type, .B = 2, .H = 4, .Hkv = 2, .Tq = Tq, .Tk = Tk, .Dk = D, .Dv = D};
    if (masked) s.ahead = 0;
    cases.push_back(s);
    s.lengths = true, s.rows_first = true, s.sink = true, s.Hkv = 1, s.d_lse = true;
    cases.push_back(s);
    s.sink = false, s.packed = true, s.lengths = false, s.Dk = D - 8, s.Dv = D - 24;
    cases.push_back(s);
    s.packed = false, s.lengths = true, s.garbage = true, s.Dk = s.Dv = D;
    cases.push_back(s);
    if (!masked) continue;
    s = {.type = type, .B = 1, .H = 2, .Hkv = 2, .Tq = Tq, .Tk = Tk, .Dk = D, .Dv = D, .behind = 100, .ahead = 30};
    cases.push_back(s);
    s.behind = 7, s.ahead = 0;
    cases.push_back(s);
    s.behind = kFar, s.prefix = 150;
    cases.push_back(s);
    s.prefix = -1, s.top_left = true, s.garbage = true;
    cases.push_back(s);
  }
  for (int n = 0; n < (options ? 14 : 0); ++n) {
    Setup s{.type = type, .B = 2, .H = 4, .Hkv = 2, .Tq = n % 2 ? 200 : 64, .Tk = n % 2 ? 333 : 64, .Dk = D, .Dv = D};
    if (n & 1) s.ahead = 0, s.lengths = true, s.garbage = n > 6;
    if (n / 2 == 0) s.cap = 2.5f;
    if (n / 2 == 1) s.slopes = true;
    if (n / 2 == 2) s.relative = true, s.sink = true;
    if (n / 2 == 3) s.bias = n & 1 ? 3 : 8;
    if (n / 2 == 4) s.drop = 0.3f;
    if (n / 2 == 5) s.documents = true, s.drop = 1;
    if (n / 2 == 6) s.keep = true, s.bias = 5, s.cap = 5, s.drop = 0.1f;
    cases.push_back(s);
  }
  Setup loud{.type = type, .B = 1, .H = 2, .Hkv = 1, .Tq = 400, .Tk = 600, .Dk = D, .Dv = D, .loud = 9};
  if (masked) loud.ahead = 0;
  cases.push_back(loud);
  return cases;
}

uint16_t* flags_of(Problem& p) {
  return reinterpret_cast<uint16_t*>((reinterpret_cast<uintptr_t>(p.workspace) + 255) / 256 * 256);
}

void check_forward(int n) {
  const ForwardEntry& e = kForwardShapes[n];
  const int before = failures.load();
  for (const Setup& s : tile_cases(e.type, e.D, e.masked, e.options)) {
    Problem p(s, 7 * n + 1);
    p.solve();
    must(forward_hopper(p.call, n, flags_of(p), cudaStreamPerThread), "forward_hopper");
    finish(("forward " + std::to_string(n) + " of " + text(s)));
    if (!verify_forward(p)) say("  in forward %d, %s\n", n, text(s).c_str());
    std::fflush(stdout);
  }
  say("forward %d: %s\n", n, failures == before ? "ok" : "FAILED");
}

// Leaves its flags where the caller can read them.
uint16_t* backward_by(Problem& p, int dq, int dkv) {
  const Setup& s = p.setup;
  Rows rows;
  rows.padded = padded_rows(s.Tq);
  const int64_t count = static_cast<int64_t>(s.B) * s.H * rows.padded + 256;
  rows.lse2 = p.take<float>(count), rows.delta = p.take<float>(count), rows.tau = p.take<float>(count);
  auto* flags = p.take<uint16_t>(backward_flags(p.call));
  must(cudaMemset(flags, 0, 2 * backward_flags(p.call)), "flags");
  must(backward_rows(p.call, rows, cudaStreamPerThread), "rows");
  must(backward_hopper(p.call, dq, dkv, rows, flags, cudaStreamPerThread), "backward_hopper");
  must(backward_extras(p.call, rows, cudaStreamPerThread), "extras");
  finish(("backward of " + text(s)));
  return flags;
}

// The dQ kernel n with every dK and dV kernel for the same heads.
void check_backward(int n) {
  const DqEntry& a = kDqShapes[n];
  for (int c = 0; c < kDkvCount; ++c) {
    const DkvEntry& e = kDkvShapes[c];
    if (e.type != a.type || e.D != a.D || e.masked != a.masked) continue;
    const int before = failures.load();
    for (const Setup& s : tile_cases(e.type, e.D, e.masked)) {
      if (s.loud > 1) continue;
      Problem p(s, 11 * n + c);
      p.solve();
      must(attention_forward(p.call, p.workspace, cudaStreamPerThread, Route::generic), "forward");
      backward_by(p, n, c);
      if (!verify_backward(p)) say("  in dq %d dkv %d, %s\n", n, c, text(s).c_str());
      std::fflush(stdout);
    }
    say("dq %d dkv %d: %s\n", n, c, failures == before ? "ok" : "FAILED");
  }
}

void every_shape() {
  beside(kDqCount + kForwardCount, [](int n) { n < kDqCount ? check_backward(n) : check_forward(n - kDqCount); });
}

Setup random_setup(std::mt19937& r) {
  auto one_in = [&](int n) { return r() % n == 0; };
  auto pick = [&](std::initializer_list<int> of) { return of.begin()[r() % of.size()]; };
  Setup s;
  s.type = static_cast<Element>(r() % 3);
  s.B = pick({1, 2, 3});
  s.Hkv = pick({1, 2, 3});
  s.H = s.Hkv * pick({1, 1, 2, 4});
  s.Tq = pick({1, 2, 17, 64, 65, 130});
  s.Tk = one_in(2) ? s.Tq : pick({1, 3, 31, 64, 129, 200});
  s.Dk = pick({8, 16, 24, 40, 64, 64, 80, 96, 128, 128, 192, 13, 1, 260});
  s.Dv = one_in(3) ? pick({8, 33, 64, 128, 256, 512}) : s.Dk;
  s.rows_first = one_in(2), s.packed = one_in(4), s.lengths = one_in(3);
  s.top_left = one_in(4);
  if (one_in(3)) s.ahead = 0;
  if (one_in(6)) s.behind = pick({0, 5, 40}), s.ahead = pick({0, 7, kFar});
  if (one_in(8)) s.prefix = pick({0, 10, 70}), s.ahead = kFar;
  s.documents = one_in(8), s.keep = one_in(8), s.sink = one_in(4), s.relative = one_in(6);
  if (one_in(5)) s.bias = pick({1, 2, 3, 4, 5, 7, 8});
  if (one_in(6)) s.cap = 2.5f;
  if (one_in(5)) s.drop = one_in(5) ? 1.f : 0.2f;
  if (one_in(5)) s.likeness = one_in(2) ? Likeness::cosine : Likeness::euclidean;
  s.garbage = one_in(4), s.d_lse = one_in(3);
  if (!s.relative && one_in(8)) s.slopes = true;
  if (one_in(8)) {  // a cache
    s.paged = one_in(2), s.quantized = !s.paged || one_in(3);
    s.packed = s.garbage = s.rows_first = false;
  }
  return s;
}

void random_options(int count, uint32_t seed, int seconds) {
  std::mt19937 r(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::vector<std::pair<Setup, uint32_t>> cases;
  for (int n = 0; n < count; ++n) {
    const Setup s = random_setup(r);
    cases.emplace_back(s, r());
  }
  beside(count, [&](int n) {
    if (std::chrono::steady_clock::now() > end) return;
    Problem p(cases[n].first, cases[n].second);
    p.solve();
    verify(p, Route::generic, "generic");
    if (!hopper_refuses_forward(p.call)) verify(p, Route::best, "best");
  });
}

// The same bits in every run.
void repeats(int count) {
  for (int D : {64, 128})
    for (bool masked : {false, true}) {
      Setup s{.B = 2, .H = 8, .Hkv = 4, .Tq = 1000, .Tk = 1000, .Dk = D, .Dv = D};
      if (masked) s.ahead = 0;
      Problem p(s, 3);
      std::vector<uint8_t> first;
      int different = 0;
      for (int n = 0; n < count; ++n) {
        p.poison_outputs();
        must(attention_forward(p.call, p.workspace, cudaStreamPerThread), "forward");
        must(attention_backward(p.call, p.workspace, cudaStreamPerThread), "backward");
        finish("repeat");
        const std::vector<uint8_t> now = p.all_outputs();
        if (n == 0) first = now;
        different += now != first;
      }
      ++checks, failures += different > 0;
      say("%s repeat D%d %s: %d of %d runs differ\n", different ? "FAIL" : "ok", D, masked ? "causal" : "full",
          different, count);
    }
}

// The same bits for a sequence alone and in a batch.
void batches() {
  for (int D : {64, 128})
    for (int Tq : {1, 700}) {
      Setup s{.B = 3, .H = 8, .Hkv = 2, .Tq = Tq, .Tk = 700, .Dk = D, .Dv = D};
      s.ahead = 0;
      Problem p(s, 5);
      must(attention_forward(p.call, p.workspace, cudaStreamPerThread), "forward");
      must(attention_backward(p.call, p.workspace, cudaStreamPerThread), "backward");
      finish("batch");
      const std::vector<uint8_t> all = p.all_outputs();
      p.poison_outputs();
      Call alone = p.call;
      alone.B = alone.batch = 1;
      for (Array* a : {&alone.q, &alone.k, &alone.v, &alone.o, &alone.d_o, &alone.dq, &alone.dk, &alone.dv})
        a->data = static_cast<uint8_t*>(a->data) + 2 * a->stride[0];
      alone.lse.data = static_cast<float*>(alone.lse.data) + alone.lse.stride[0];
      must(attention_forward(alone, p.workspace, cudaStreamPerThread), "forward");
      must(attention_backward(alone, p.workspace, cudaStreamPerThread), "backward");
      finish("alone");
      const std::vector<uint8_t> one = p.all_outputs();
      int64_t different = 0, written = 0;
      for (size_t i = 0; i < one.size(); ++i)
        written += one[i] != 0xFF, different += one[i] != 0xFF && one[i] != all[i];
      const bool ok = different == 0 && written > 0;
      ++checks, failures += !ok;
      say("%s batch D%d Tq%d: %lld of %lld bytes differ\n", ok ? "ok" : "FAIL", D, Tq,
          static_cast<long long>(different), static_cast<long long>(written));
    }
}

// What lies in rows past a sequence's end makes no tile of query rows be done again. (Of dK and dV it does: 0 · NaN.)
void calm() {
  for (int D : {64, 128})
    for (bool masked : {false, true}) {
      Setup s{.B = 3, .H = 4, .Hkv = 2, .Tq = 300, .Tk = 300, .Dk = D, .Dv = D, .lengths = true, .rows_garbage = true};
      if (masked) s.ahead = 0;
      Problem p(s, 9);
      p.solve();
      must(attention_forward(p.call, p.workspace, cudaStreamPerThread), "forward");
      finish("calm");
      bool ok = verify_forward(p);
      auto count = [](const uint16_t* flags, int64_t n, uint16_t calm_one) {
        std::vector<uint16_t> read(n);
        must(cudaMemcpy(read.data(), flags, 2 * n, cudaMemcpyDeviceToHost), "flags");
        return n - std::count(read.begin(), read.end(), calm_one);
      };
      const int64_t forward = count(flags_of(p), int64_t{16} * s.B * s.H * whole_tiles(s.Tq, 128), 0xFFFF);
      const int dq = dq_shape(p.call);
      const int64_t dq_flags = int64_t{16} * s.B * s.H * whole_tiles(s.Tq, 64 * kDqShapes[dq].groups);
      const int64_t backward = count(backward_by(p, dq, dkv_shape(p.call)), dq_flags, 0);
      ok &= verify_backward(p) && forward == 0 && backward == 0;
      ++checks, failures += !ok;
      say("%s calm D%d %s: %lld tiles again, %lld of dQ mended\n", ok ? "ok" : "FAIL", D, masked ? "causal" : "full",
          static_cast<long long>(forward), static_cast<long long>(backward));
    }
}

void check_decode(const Setup& s, uint32_t seed) {
  Problem p(s, seed);
  for (Span& span : p.spans) span.q_len = 1;  // every sequence asks
  if (p.call.spans)
    must(cudaMemcpy(const_cast<Span*>(p.call.spans), p.spans.data(), p.spans.size() * sizeof(Span),
                    cudaMemcpyHostToDevice),
         "spans");
  p.solve();
  p.poison_outputs();
  if (decode_refuses(p.call)) say("FAIL decode refuses %s\n", text(s).c_str()), ++failures;
  must(attention_forward(p.call, p.workspace, cudaStreamPerThread), "decode");
  finish("decode of " + text(s));
  if (!verify_forward(p)) say("  in decode, %s\n", text(s).c_str());
}

void decodes() {
  std::vector<std::pair<Setup, int>> cases;
  for (Element type : {Element::bf16, Element::f16})
    for (int D : {64, 128})
      for (int Tk : {1, 15, 127, 128, 1000, 8192, 9000})
        for (int variant = 0; variant < 4; ++variant) {
          Setup s{.type = type, .B = 3, .H = 8, .Hkv = 2, .Tq = 1, .Tk = Tk, .Dk = D, .Dv = D};
          s.lengths = s.garbage = variant & 1, s.rows_first = variant & 2;
          if (variant == 3) s.behind = 300, s.ahead = 0;
          cases.emplace_back(s, Tk + variant);
        }
  beside(static_cast<int>(cases.size()), [&](int n) { check_decode(cases[n].first, cases[n].second); });
}

// A few calls that reach every kernel: for compute-sanitizer.
void small() {
  std::mt19937 r(1);
  for (int n = 0; n < 12; ++n) {
    Problem p(random_setup(r), r());
    p.solve();
    verify(p, Route::generic, "generic");
  }
  for (Element type : {Element::bf16, Element::f16})
    for (int D : {64, 128})
      for (bool masked : {false, true}) {
        Setup s{.type = type, .B = 2, .H = 2, .Hkv = 1, .Tq = 200, .Tk = 260, .Dk = D, .Dv = D, .lengths = true};
        if (masked) s.ahead = 0, s.garbage = true;
        Problem p(s, 2);
        p.solve();
        verify(p, Route::best, "best");
      }
  for (int D : {64, 128, 192, 256}) {
    Problem with_options({.B = 1,
                          .H = 2,
                          .Hkv = 1,
                          .Tq = 150,
                          .Tk = 170,
                          .Dk = D,
                          .Dv = D,
                          .ahead = 0,
                          .documents = true,
                          .keep = true,
                          .bias = 8,
                          .cap = 5,
                          .drop = 0.1f},
                         6);
    with_options.solve();
    verify(with_options, Route::best, "options");
  }
  Setup s{.B = 2, .H = 8, .Hkv = 2, .Tq = 1, .Tk = 300, .Dk = 128, .Dv = 128};
  Problem p(s, 4);
  p.solve();
  verify(p, Route::best, "decode");
  for (int D : {64, 128}) {  // more tiles than multiprocessors: blocks take a second one
    Problem many({.B = 4, .H = 40, .Hkv = 40, .Tq = 70, .Tk = 70, .Dk = D, .Dv = D}, 5);
    many.solve();
    verify(many, Route::best, "many tiles");
  }
}

}  // namespace
}  // namespace mh::kernels::cuda

int main(int argc, char** argv) {
  using namespace mh::kernels::cuda;
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 100, seed = argc > 3 ? std::atoi(argv[3]) : 1;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was said before a time limit must not be lost
  keep_freed_memory();
  if (what == "shapes")
    every_shape();
  else if (what == "forward")
    check_forward(count);
  else if (what == "backward")
    check_backward(count);
  else if (what == "options")
    random_options(count, seed, argc > 4 ? std::atoi(argv[4]) : 1 << 20);
  else if (what == "repeat")
    repeats(count);
  else if (what == "batch")
    batches();
  else if (what == "calm")
    calm();
  else if (what == "decode")
    decodes();
  else if (what == "small")
    small();
  else {
    std::printf(
        "usage: attention_check shapes | forward SHAPE | backward SHAPE | options COUNT SEED [SECONDS] | repeat COUNT | batch | calm | decode | small\n");
    return 2;
  }
  static const char* types[] = {"f32", "bf16", "f16"};
  for (int t = 0; t < 3; ++t)
    say("largest share of the bound, %s: forward %.2f, backward %.2f\n", types[t], worst[t][0].load(),
        worst[t][1].load());
  say("%s: %d checks, %d failures\n", what.c_str(), checks.load(), failures.load());
  return failures > 0;
}
