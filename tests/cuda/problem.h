// A random call of attention on the device: its arrays, its options, and the double-precision answer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/launch.h"
#include "multihead/kernels/cuda/plan.h"
#include "tests/cuda/reference.h"

namespace mh::kernels::cuda {

// What a job says is printed in one piece when it ends: jobs run beside each other, each on its thread's stream.
inline thread_local bool is_job = false;
inline thread_local std::string said;
template <class... Args>
void say(const char* format, Args... args) {
  if (!is_job) {
    std::printf(format, args...);
    return;
  }
  char line[800];
  std::snprintf(line, sizeof line, format, args...);
  said += line;
}
inline void print_said() {
  std::fputs(said.c_str(), stdout);
  std::fflush(stdout);
  said.clear();
}

inline void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  say("FAIL %s: %s\n", what, cudaGetErrorString(error));
  print_said();
  std::_Exit(1);
}
inline void finish(const std::string& what) { must(cudaStreamSynchronize(cudaStreamPerThread), what.c_str()); }

// job(0), …, job(count - 1), as many at a time as there are cores, or MH_JOBS.
template <class Job>
void beside(int count, Job&& job) {
  const char* wanted = std::getenv("MH_JOBS");
  const int most = std::max(1, wanted ? std::atoi(wanted) : static_cast<int>(std::thread::hardware_concurrency()));
  std::atomic<int> next{0};
  std::mutex printing;
  std::vector<std::thread> threads;
  for (int t = 0; t < std::min(count, most); ++t)
    threads.emplace_back([&] {
      is_job = true;
      for (int n = next++; n < count; n = next++) {
        job(n);
        const std::lock_guard lock(printing);
        print_said();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Allocations come from a pool: a problem makes hundreds.
inline void keep_freed_memory() {
  cudaMemPool_t pool;
  must(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
  uint64_t all = UINT64_MAX;
  must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), "cudaMemPoolSetAttribute");
}

struct Setup {
  Element type = Element::bf16;
  int B = 1, H = 2, Hkv = 1, Tq = 64, Tk = 64, Dk = 64, Dv = 64;
  bool rows_first = false;  // (B, T, H, D) in memory
  bool packed = false, lengths = false;
  int behind = kFar, ahead = kFar, prefix = -1;
  bool top_left = false;  // position 0 in place of Tk - Tq
  bool documents = false, keep = false, sink = false, relative = false, slopes = false;
  bool paged = false, quantized = false;  // keys of a cache: forward alone
  int bias = 0;                           // bits: which of B, H, Tq are broadcast; 8: no broadcast; 0: none
  float cap = 0, drop = 0, loud = 1;
  Likeness likeness = Likeness::dot;
  bool garbage = false, d_lse = false;
  bool rows_garbage = false;  // NaN in rows of q and d_o past a sequence's end, and nowhere else
};

// What an output must be. bound: the accuracy rule of docs/semantics.md.
struct Expectation {
  std::vector<double> values;
  double bound = 0;
};

class Problem {
 public:
  Problem(const Setup& s, uint32_t seed) : setup(s), random_(seed) { build(); }
  ~Problem() {
    for (void* p : taken_) cudaFreeAsync(p, nullptr);
  }
  Problem(const Problem&) = delete;

  const Setup setup;
  Call call;
  void* workspace = nullptr;
  std::map<std::string, Expectation> expected;
  std::vector<Span> spans;

  template <class T>
  T* take(int64_t count, const std::vector<T>* from = nullptr) {
    void* p = nullptr;
    must(cudaMallocAsync(&p, count * sizeof(T) + 256, nullptr), "cudaMallocAsync");
    must(cudaMemset(p, 0xFF, count * sizeof(T) + 256), "cudaMemset");  // NaN until written
    taken_.push_back(p);
    if (from) must(cudaMemcpy(p, from->data(), count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return static_cast<T*>(p);
  }

  // Numbers of an array in the order (b, h, i, d) of sequences, rows past the end left out as 0.
  std::vector<double> read(const Array& a, bool of_keys, int width) const;
  std::vector<float> read(const float* p, int64_t n) const {
    std::vector<float> out(n);
    must(cudaMemcpy(out.data(), p, n * 4, cudaMemcpyDeviceToHost), "read");
    return out;
  }
  bool forward_only() const { return setup.paged || setup.quantized; }
  void poison_outputs() const {
    for (const auto& [p, bytes] : outputs_) must(cudaMemset(p, 0xFF, bytes), "cudaMemset");
  }
  std::vector<uint8_t> all_outputs() const {
    std::vector<uint8_t> out;
    for (const auto& [p, bytes] : outputs_) {
      out.resize(out.size() + bytes);
      must(cudaMemcpy(out.data() + out.size() - bytes, p, bytes, cudaMemcpyDeviceToHost), "read");
    }
    return out;
  }
  void solve();

 private:
  int entries() const { return setup.packed ? 1 : setup.B; }
  int64_t element_bytes() const { return setup.type == Element::f32 ? 4 : 2; }
  Array array(int heads, int rows, int width, bool random, bool output = false);
  void fill(void* p, int64_t n);
  void make_spans();
  void make_options();
  void spoil();
  void make_cache();
  template <class Real>
  std::map<std::string, std::vector<double>> outputs(int draw);
  void build();
  void write(const Array& a, int64_t at, float x) {
    uint8_t bytes[4];
    const int size = put(bytes, x);
    must(cudaMemcpy(static_cast<uint8_t*>(a.data) + at * size, bytes, size, cudaMemcpyHostToDevice), "write");
  }
  int put(uint8_t* to, float x) const {
    if (setup.type == Element::f32) return std::memcpy(to, &x, 4), 4;
    const __nv_bfloat16 b(x);
    const __half h(x);
    std::memcpy(to, setup.type == Element::bf16 ? static_cast<const void*>(&b) : static_cast<const void*>(&h), 2);
    return 2;
  }

  double unput(const uint8_t* from, int size) const {
    if (size == 4) return *reinterpret_cast<const float*>(from);
    if (setup.type == Element::bf16) return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(from));
    return __half2float(*reinterpret_cast<const __half*>(from));
  }

  std::mt19937 random_;
  std::vector<void*> taken_;
  std::vector<std::pair<void*, int64_t>> outputs_;
  int q_rows_ = 0, k_rows_ = 0;
};

inline void Problem::fill(void* p, int64_t n) {
  std::normal_distribution<float> normal(0, setup.loud);
  const int64_t size = element_bytes();
  std::vector<uint8_t> bytes(n * size);
  for (int64_t i = 0; i < n; ++i) put(&bytes[i * size], normal(random_));
  must(cudaMemcpy(p, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "fill");
}

inline Array Problem::array(int heads, int rows, int width, bool random, bool output) {
  Array a;
  const int64_t n = static_cast<int64_t>(entries()) * heads * rows * width;
  a.type = setup.type;
  a.data = take<uint8_t>(n * element_bytes());
  a.stride[0] = static_cast<int64_t>(heads) * rows * width;
  a.stride[1] = setup.rows_first ? width : static_cast<int64_t>(rows) * width;
  a.stride[2] = setup.rows_first ? static_cast<int64_t>(heads) * width : width;
  a.stride[3] = 1;
  if (random) fill(a.data, n);
  if (output) outputs_.push_back({a.data, n * element_bytes()});
  return a;
}

inline void Problem::make_spans() {
  const Setup& s = setup;
  q_rows_ = s.packed ? 0 : s.Tq;
  k_rows_ = s.packed ? 0 : s.Tk;
  for (int b = 0; b < s.B; ++b) {
    Span span;
    span.batch = s.packed ? 0 : b;
    span.q_len = s.Tq;
    span.k_len = s.Tk;
    if ((s.lengths || s.packed) && b > 0) {  // sequence 0 has the full length
      span.q_len = static_cast<int>(random_() % (s.Tq + 1));
      span.k_len = static_cast<int>(random_() % (s.Tk + 1));
    }
    if (s.packed) {
      span.q_begin = q_rows_;
      span.k_begin = k_rows_;
      q_rows_ += span.q_len;
      k_rows_ += span.k_len;
    }
    span.position = s.top_left ? 0 : span.k_len - span.q_len;
    span.prefix = s.prefix;
    spans.push_back(span);
  }
}

inline void Problem::make_options() {
  const Setup& s = setup;
  Options& o = call.options;
  auto floats = [&](int64_t n, float scale, float base) {
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> x(n);
    for (float& v : x) v = base + scale * normal(random_);
    return take<float>(n, &x);
  };
  o.likeness = s.likeness;
  o.scale =
      s.likeness == Likeness::cosine
          ? floats(s.H, 0.5f, 4.f)
          : floats(s.H, 0.f, (s.likeness == Likeness::euclidean ? 0.3f : 1.f) / std::sqrt(static_cast<float>(s.Dk)));
  o.cap = s.cap;
  o.behind = s.behind;
  o.ahead = s.ahead;
  o.has_prefix = s.prefix >= 0;
  if (s.documents) {
    std::vector<int> q(s.B * s.Tq), k(s.B * s.Tk);
    for (int& x : q) x = static_cast<int>(random_() % 3);
    for (int& x : k) x = static_cast<int>(random_() % 3);
    o.q_documents = {take<int>(q.size(), &q), Element::i32, {s.Tq, 1, 0, 0}};
    o.k_documents = {take<int>(k.size(), &k), Element::i32, {s.Tk, 1, 0, 0}};
  }
  if (s.keep) {  // broadcast over the heads
    std::vector<uint8_t> where(static_cast<int64_t>(s.B) * s.Tq * s.Tk);
    for (uint8_t& x : where) x = random_() % 3 != 0;
    for (int j = 0; j < s.Tk; ++j) where[j] = 0;  // row 0 of sequence 0 keeps nothing
    o.dense[0] = {{take<uint8_t>(where.size(), &where), Element::u8, {static_cast<int64_t>(s.Tq) * s.Tk, 0, s.Tk, 1}},
                  true};
    o.dense_count = 1;
  }
  if (s.relative) {
    o.relative_min = -(s.Tk + s.Tq);
    o.relative_count = 2 * (s.Tk + s.Tq) + 1;
    o.relative = floats(s.H * o.relative_count, 0.5f, 0);
    call.drelative = take<float>(s.H * o.relative_count);
    outputs_.push_back({call.drelative, s.H * o.relative_count * 4});
  }
  if (s.slopes) o.slopes = floats(s.H, 0.1f, 0.2f);
  if (s.bias) {
    const int64_t sizes[4] = {s.bias & 1 ? 1 : s.B, s.bias & 2 ? 1 : s.H, s.bias & 4 ? 1 : s.Tq, s.Tk};
    int64_t n = 1;
    o.bias.type = call.dbias.type = Element::f32;
    for (int axis = 3; axis >= 0; --axis) {
      o.bias_size[axis] = sizes[axis];
      o.bias.stride[axis] = call.dbias.stride[axis] = sizes[axis] == 1 ? 0 : n;
      n *= sizes[axis];
    }
    o.bias.data = floats(n, 1, 0);
    call.dbias.data = take<float>(n);
    outputs_.push_back({call.dbias.data, n * 4});
  }
  if (s.sink) {
    o.sink = floats(s.H, 1, 0);
    call.dsink = take<float>(s.H);
    outputs_.push_back({call.dsink, s.H * 4});
  }
  if (s.likeness == Likeness::cosine) {
    call.dscale = take<float>(s.H);
    outputs_.push_back({call.dscale, s.H * 4});
  }
  o.dropout_threshold = static_cast<uint32_t>(s.drop * 65536);
  o.dropout_seed = 0x123456789ABCDEFull;
}

// NaN where nobody may look: rows and keys past a sequence's end, and one key and value that a causal mask hides from
// most.
inline void Problem::spoil() {
  const Setup& s = setup;
  for (int b = 0; b < s.B && !s.packed; ++b) {
    for (int h = 0; h < s.H; ++h)
      for (int i = spans[b].q_len; i < s.Tq; ++i)
        for (const Array* a : {&call.q, &call.d_o}) write(*a, a->at(b, h, i), NAN);
    for (int h = 0; h < s.Hkv && s.garbage; ++h)
      for (int j = spans[b].k_len; j < s.Tk; ++j)
        for (const Array* a : {&call.k, &call.v}) write(*a, a->at(b, h, j), NAN);
  }
  if (s.garbage && s.ahead == 0 && s.Tk > 4) {
    write(call.k, call.k.at(0, 0, spans[0].k_begin + s.Tk - 2, 1), NAN);
    write(call.v, call.v.at(0, 0, spans[0].k_begin + s.Tk - 3, 0), INFINITY);
  }
}

inline void Problem::build() {
  const Setup& s = setup;
  make_spans();
  call.B = s.B, call.H = s.H, call.Hkv = s.Hkv, call.Dk = s.Dk, call.Dv = s.Dv, call.Tq = s.Tq, call.Tk = s.Tk;
  call.batch = entries(), call.q_rows = q_rows_, call.k_rows = k_rows_;
  call.span = spans[0];
  if (s.lengths || s.packed) call.spans = take<Span>(spans.size(), &spans);
  call.q = array(s.H, q_rows_, s.Dk, true);
  call.k = array(s.Hkv, k_rows_, s.Dk, true);
  call.v = array(s.Hkv, k_rows_, s.Dv, true);
  call.d_o = array(s.H, q_rows_, s.Dv, true);
  call.o = array(s.H, q_rows_, s.Dv, false, true);
  call.dq = array(s.H, q_rows_, s.Dk, false, true);
  call.dk = array(s.Hkv, k_rows_, s.Dk, false, true);
  call.dv = array(s.Hkv, k_rows_, s.Dv, false, true);
  const int64_t rows = static_cast<int64_t>(entries()) * s.H * q_rows_;
  call.lse = {take<float>(rows), Element::f32, {static_cast<int64_t>(s.H) * q_rows_, q_rows_, 1, 0}};
  outputs_.push_back({call.lse.data, rows * 4});
  if (s.d_lse) {
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> x(rows);
    for (float& v : x) v = normal(random_);
    call.d_lse = call.lse;
    call.d_lse.data = take<float>(rows, &x);
  }
  if (forward_only()) make_cache();
  make_options();
  if (s.garbage || s.rows_garbage) spoil();
  const int64_t bytes = std::max(forward_workspace(call), backward_workspace(call));
  workspace = take<uint8_t>(bytes);
}

inline std::vector<double> Problem::read(const Array& a, bool of_keys, int width) const {
  const int heads = of_keys ? setup.Hkv : setup.H, rows = of_keys ? k_rows_ : q_rows_,
            T = of_keys ? setup.Tk : setup.Tq;
  const int64_t n = static_cast<int64_t>(entries()) * heads * rows * width, size = element_bytes();
  std::vector<uint8_t> bytes(n * size);
  must(cudaMemcpy(bytes.data(), a.data, bytes.size(), cudaMemcpyDeviceToHost), "read");
  std::vector<double> out(static_cast<int64_t>(setup.B) * heads * T * width, 0);
  for (int b = 0; b < setup.B; ++b)
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < (of_keys ? spans[b].k_len : spans[b].q_len); ++i)
        for (int d = 0; d < width; ++d) {
          const int64_t at = a.at(spans[b].batch, h, (of_keys ? spans[b].k_begin : spans[b].q_begin) + i, d);
          out[((static_cast<int64_t>(b) * heads + h) * T + i) * width + d] =
              unput(&bytes[at * size], static_cast<int>(size));
        }
  return out;
}

// Keys and values in shuffled pages of 8 rows, or as 8-bit numbers with a factor a row, or both.
inline void Problem::make_cache() {
  const Setup& s = setup;
  const int rows = s.paged ? 8 : k_rows_, each = (s.Tk + 7) / 8, count = s.paged ? s.B * each + 1 : entries();
  if (s.paged) {
    std::vector<int> pages(s.B * each);
    for (size_t n = 0; n < pages.size(); ++n) pages[n] = static_cast<int>(n) + 1;
    std::shuffle(pages.begin(), pages.end(), random_);
    call.pages = {take<int>(pages.size(), &pages), Element::i32, {each, 1, 0, 0}};
    call.page = rows;
  }
  for (Array* a : {&call.k, &call.v}) {
    const int width = a == &call.k ? s.Dk : s.Dv;
    const int64_t n = static_cast<int64_t>(count) * s.Hkv * rows;
    a->stride[0] = static_cast<int64_t>(s.Hkv) * rows * width, a->stride[1] = static_cast<int64_t>(rows) * width,
    a->stride[2] = width;
    if (!s.quantized) {
      a->data = take<uint8_t>(n * width * element_bytes());
      fill(a->data, n * width);
      continue;
    }
    std::vector<int8_t> numbers(n * width);
    for (int8_t& x : numbers) x = static_cast<int8_t>(random_() % 255 - 127);
    a->data = take<int8_t>(numbers.size(), &numbers);
    a->type = Element::i8;
    std::vector<float> factors(n);
    for (float& x : factors) x = 0.005f + static_cast<float>(random_() % 100) * 1e-4f;
    Array& scale = a == &call.k ? call.k_scale : call.v_scale;
    scale.data = take<float>(n, &factors);
    scale.type = Element::f32;
    scale.stride[0] = static_cast<int64_t>(s.Hkv) * rows;
    scale.stride[1] = rows;
    scale.stride[2] = 1;
  }
}

template <class Real>
std::map<std::string, std::vector<double>> Problem::outputs(int draw) {
  const Setup& s = setup;
  const Options& o = call.options;
  const int64_t rows = static_cast<int64_t>(s.B) * s.H * s.Tq, pairs = rows * s.Tk,
                keys = static_cast<int64_t>(s.B) * s.Hkv * s.Tk;
  const int64_t biases = call.dbias ? o.bias_size[0] * o.bias_size[1] * o.bias_size[2] * o.bias_size[3] : 0,
                far = call.drelative ? s.H * o.relative_count : 0;
  const size_t before = taken_.size();
  reference::Pairs<Real> r{};
  r.type = s.type;
  r.draw = draw;
  for (Real** p : {&r.s, &r.similarity, &r.p, &r.grad, &r.ds}) *p = take<Real>(pairs);
  r.kept = take<uint8_t>(pairs);
  r.delta = take<Real>(rows);
  struct Named {
    const char* name;
    Real** data;
    int64_t count;
  };
  std::vector<Named> named = {{"o", &r.o, rows * s.Dv}, {"lse", &r.lse, rows}};
  if (!forward_only())
    named.insert(named.end(), {{"dq", &r.dq, rows * s.Dk},
                               {"dk", &r.dk, keys * s.Dk},
                               {"dv", &r.dv, keys * s.Dv},
                               {"dsink", &r.dsink, s.H},
                               {"dscale", &r.dscale, s.H},
                               {"dbias", &r.dbias, biases},
                               {"drelative", &r.drelative, far}});
  for (const Named& each : named) *each.data = take<Real>(each.count);
  auto go = [&](auto kernel, int64_t n) {
    if (n > 0)
      must(launch(kernel, Grid{dim3(static_cast<unsigned>((n + 127) / 128)), 128}, nullptr, call, r), "the reference");
  };
  go(reference::scores<Real>, pairs);
  go(reference::rows<Real>, rows);
  go(reference::outputs<Real>, rows * s.Dv);
  if (!forward_only()) {
    go(reference::deltas<Real>, rows);
    go(reference::gradients<Real>, pairs);
    go(reference::query_gradients<Real>, rows * s.Dk);
    go(reference::key_gradients<Real>, keys * std::max(s.Dk, s.Dv));
    go(reference::shared_gradients<Real>, std::max<int64_t>(s.H, std::max(biases, far)));
  }
  std::map<std::string, std::vector<double>> out;
  for (const Named& each : named) {
    std::vector<Real> numbers(each.count);
    must(cudaMemcpy(numbers.data(), *each.data, each.count * sizeof(Real), cudaMemcpyDeviceToHost), "the reference");
    out[each.name].assign(numbers.begin(), numbers.end());
  }
  for (; taken_.size() > before; taken_.pop_back()) cudaFreeAsync(taken_.back(), nullptr);
  return out;
}

// The answer, and what the plain algorithm errs by: the most of one run, and for gradients and few rows, where one run
// is luck, no less than the standard deviation over several. Of sums over the whole call (dsink and its like) and of
// fewer than 100 numbers it is the most of all runs.
inline void Problem::solve() {
  constexpr int kDraws = 8;
  constexpr double kUnderflow = 0x1p-126 * 256;
  const auto wanted = outputs<double>(0);
  auto rough = outputs<float>(0);
  std::map<std::string, std::vector<double>> squares;
  std::map<std::string, double> most_of_runs;
  auto error = [](double got, double want) {
    return std::isfinite(want) && std::isfinite(got) ? std::abs(got - want) : 0;
  };
  for (int draw = 1; draw <= kDraws; ++draw)
    for (const auto& [name, numbers] : outputs<float>(draw)) {
      std::vector<double>& sums = squares[name];
      sums.resize(numbers.size());
      for (size_t n = 0; n < numbers.size(); ++n) {
        const double far = error(numbers[n], wanted.at(name)[n]);
        sums[n] += far * far / kDraws;
        most_of_runs[name] = std::max(most_of_runs[name], far);
      }
    }
  for (const auto& [name, values] : wanted) {
    const bool forward = name == "o" || name == "lse",
               single = name != "o" && name != "dq" && name != "dk" && name != "dv";
    double most = 0, deviation = 0, largest = 0;
    for (size_t n = 0; n < values.size(); ++n) {
      uint8_t bytes[4];
      double stored = rough[name][n];  // in the type of the output
      if (!single) stored = unput(bytes, put(bytes, static_cast<float>(stored)));
      most = std::max(most, error(stored, values[n]));
      deviation = std::max(deviation, std::sqrt(squares[name][n]));
      if (std::isfinite(values[n])) largest = std::max(largest, std::abs(values[n]));
    }
    if (!forward || values.size() / (name == "o" ? setup.Dv : 1) < 1000) most = std::max(most, deviation);
    if (!forward && (single || values.size() < 100)) most = std::max(most, most_of_runs[name]);
    const int digits = single || setup.type == Element::f32 ? 23 : setup.type == Element::bf16 ? 7 : 10;
    const int lowest = digits == 10 ? -14 : -126;
    const double unit = largest == 0 ? 0 : std::ldexp(1.0, std::max(std::ilogb(largest), lowest) - digits);
    expected[name] = {values, (forward ? 1.5 : 2) * most + 2 * unit + kUnderflow};
  }
}

}  // namespace mh::kernels::cuda
