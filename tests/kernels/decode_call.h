// A decode call with everything it points to, and what double precision makes of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "tests/harness/rungs.h"

namespace mh {

using kernels::AttentionForwardArgs;
using kernels::Sequence;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Elements of any type, exactly as many as the sizes need: what lies past them belongs to the sanitizer.
struct Array {
  std::vector<uint8_t> bytes;
  View view;

  Array() = default;
  // `gap` elements of NaN (i8: of 127) behind each row of the last axis.
  Array(std::vector<int64_t> sizes, DType type, int64_t gap = 0) {
    view.dtype = type;
    view.rank = static_cast<int>(sizes.size());
    int64_t step = 1;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      view.size[axis] = sizes[axis];
      view.stride[axis] = step;
      step *= sizes[axis] + (axis == view.rank - 1 ? gap : 0);
    }
    bytes.resize(static_cast<size_t>(std::max<int64_t>(step - (step > 0 ? gap : 0), 1) * size_of(type)));
    view.data = bytes.data();
    clear();
  }
  Array(const Array& other) : bytes(other.bytes), view(other.view) { view.data = bytes.data(); }
  Array& operator=(const Array& other) {
    bytes = other.bytes;
    view = other.view;
    view.data = bytes.data();
    return *this;
  }
  explicit operator bool() const { return !bytes.empty(); }

  void clear() {
    for (int64_t n = 0; n < static_cast<int64_t>(bytes.size()) / size_of(view.dtype); ++n) set(n, kNan);
  }
  void set(int64_t at, float x) {
    switch (view.dtype) {
      case DType::f32: view.as<float>()[at] = x; break;
      case DType::bf16: view.as<bf16>()[at] = bf16(x); break;
      case DType::f16: view.as<f16>()[at] = f16(x); break;
      case DType::i8: view.as<int8_t>()[at] = std::isnan(x) ? 127 : static_cast<int8_t>(std::lrintf(x)); break;
      case DType::i32: view.as<int32_t>()[at] = std::isnan(x) ? 0 : static_cast<int32_t>(x); break;
      default: view.as<uint8_t>()[at] = std::isnan(x) ? 0 : static_cast<uint8_t>(x); break;
    }
  }
  double get(int64_t at) const {
    switch (view.dtype) {
      case DType::f32: return view.as<float>()[at];
      case DType::bf16: return static_cast<float>(view.as<bf16>()[at]);
      case DType::f16: return static_cast<float>(view.as<f16>()[at]);
      case DType::i8: return view.as<int8_t>()[at];
      case DType::i32: return view.as<int32_t>()[at];
      default: return view.as<uint8_t>()[at];
    }
  }
  int64_t at(int64_t a, int64_t b = 0, int64_t c = 0, int64_t d = 0) const {
    return a * view.stride[0] + b * view.stride[1] + c * view.stride[2] + d * view.stride[3];
  }
};

struct Decoding {
  std::string label{};
  std::vector<int64_t> lengths = {700};
  int64_t key_heads = 1, group = 1, queries = 1, key_width = 64, value_width = 64;
  DType cache = DType::f32, query = DType::f32;
  int64_t page = 0, gap = 0;
  float cap = 0;
  bool sink = false, relative = false, slopes = false, documents = false, keep = false, drop = false;
  int64_t nearest = 0;  // with relative: how many distances the array has, from 3 on; 0: every one
  bool bias = false;
  DType bias_type = DType::f32;
  int64_t behind = kernels::kUnbounded, ahead = kernels::kUnbounded;
  int64_t prefix = -1;
  float spread = 1;  // of q
};

// A call and everything it points to.
struct Call {
  Decoding setup;
  Array q, k, v, k_scale, v_scale, pages, o, lse, bias, slopes, keep, drop, q_documents, k_documents;
  std::vector<Sequence> sequences;
  std::vector<float> scale, sink, relative;
  int64_t relative_min = 0, relative_count = 0;

  int64_t heads() const { return setup.key_heads * setup.group; }
  int64_t batch() const { return static_cast<int64_t>(setup.lengths.size()); }
  int64_t longest() const { return *std::max_element(setup.lengths.begin(), setup.lengths.end()); }

  // Where key j of sequence b stands in k (x = k), v or their scales.
  int64_t key_at(const Array& x, int64_t b, int64_t h, int64_t j) const {
    if (!setup.page) return x.at(b, h, j);
    const auto page = static_cast<int64_t>(pages.get(pages.at(b, j / setup.page)));
    return x.at(page, h, j % setup.page);
  }

  AttentionForwardArgs args() {
    AttentionForwardArgs a;
    a.q = q.view;
    a.kv = {.k = k.view, .v = v.view, .k_scale = k_scale.view, .v_scale = v_scale.view, .pages = pages.view};
    a.scores.scale = scale.data();
    a.scores.cap = setup.cap;
    a.scores.behind = setup.behind;
    a.scores.ahead = setup.ahead;
    a.scores.has_prefix = setup.prefix >= 0;
    a.scores.bias = bias.view;
    a.scores.slopes = slopes.view;
    a.scores.q_documents = q_documents.view;
    a.scores.k_documents = k_documents.view;
    if (keep) a.scores.dense[a.scores.dense_count++] = {.where = keep.view, .keep = true};
    if (drop) a.scores.dense[a.scores.dense_count++] = {.where = drop.view, .keep = false};
    if (setup.sink) a.scores.sink = sink.data();
    if (setup.relative) {
      a.scores.relative = relative.data();
      a.scores.relative_min = relative_min;
      a.scores.relative_count = relative_count;
    }
    a.sequences = {sequences.data(), batch()};
    a.o = o.view;
    a.lse = lse.view;
    return a;
  }

  bool kept(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const Sequence& s = sequences[static_cast<size_t>(b)];
    const int64_t position = s.position + i;
    if (setup.behind != kernels::kUnbounded && j < position - setup.behind) return false;
    if (setup.ahead != kernels::kUnbounded && j > position + setup.ahead) return false;
    if (setup.prefix >= 0 && j > std::max(position, s.prefix - 1)) return false;
    if (k_documents && k_documents.get(k_documents.at(b, j)) != q_documents.get(q_documents.at(b, i))) return false;
    if (keep && keep.get(keep.at(b, h, i, j)) == 0) return false;
    return !drop || drop.get(drop.at(b, h, i, j)) == 0;
  }

  // What an earlier run has left is no result of this one.
  void run(const kernels::Table& table) {
    o.clear();
    lse.clear();
    table.attention_decode(args(), queue_of(Device{}));
  }
};

inline void fill(Array& x, std::mt19937& random, float spread = 1) {
  std::normal_distribution<float> normal(0, spread);
  const int64_t axis = x.view.rank - 1, width = x.view.size[static_cast<size_t>(axis)];
  const int64_t step = axis > 0 ? x.view.stride[static_cast<size_t>(axis - 1)] : width;
  const int64_t count = static_cast<int64_t>(x.bytes.size()) / size_of(x.view.dtype);
  for (int64_t row = 0; row < count; row += std::max<int64_t>(step, 1)) {
    for (int64_t d = 0; d < width && row + d < count; ++d) x.set(row + d, normal(random));
  }
}

// Rows of normal numbers, quantised with their own scale in an i8 cache.
inline void fill_cache(Array& x, Array& scales, std::mt19937& random) {
  if (x.view.dtype != DType::i8) return fill(x, random);
  std::normal_distribution<float> normal;
  const int64_t width = x.view.size[3];
  std::vector<float> row(static_cast<size_t>(width));
  for (int64_t a = 0; a < x.view.size[0]; ++a) {
    for (int64_t h = 0; h < x.view.size[1]; ++h) {
      for (int64_t j = 0; j < x.view.size[2]; ++j) {
        float top = 0;
        for (float& value : row) top = std::max(top, std::fabs(value = normal(random)));
        scales.set(scales.at(a, h, j), top / 127);
        for (int64_t d = 0; d < width; ++d) x.set(x.at(a, h, j, d), row[static_cast<size_t>(d)] * 127 / top);
      }
    }
  }
}

inline void fill_marks(Array& x, std::mt19937& random, double share) {
  std::bernoulli_distribution mark(share);
  for (int64_t n = 0; n < static_cast<int64_t>(x.bytes.size()); ++n) x.set(n, mark(random) ? 1.0f : 0.0f);
}

inline Call make(const Decoding& s, unsigned seed = 1) {
  std::mt19937 random(seed);
  Call c;
  c.setup = s;
  const int64_t batch = c.batch(), heads = c.heads(), longest = c.longest();
  const int64_t blocks = s.page ? (longest + s.page - 1) / s.page : 0;
  const int64_t rows = s.page ? s.page : longest, first = s.page ? std::max<int64_t>(batch * blocks, 1) : batch;
  c.q = Array({batch, heads, s.queries, s.key_width}, s.query, s.gap);
  c.k = Array({first, s.key_heads, rows, s.key_width}, s.cache, s.gap);
  c.v = Array({first, s.key_heads, rows, s.value_width}, s.cache, s.gap);
  if (s.cache == DType::i8) {
    c.k_scale = Array({first, s.key_heads, rows}, DType::f32);
    c.v_scale = Array({first, s.key_heads, rows}, DType::f32);
  }
  c.o = Array({batch, heads, s.queries, s.value_width}, s.query);
  c.lse = Array({batch, heads, s.queries}, DType::f32);
  fill(c.q, random, s.spread);
  fill_cache(c.k, c.k_scale, random);
  fill_cache(c.v, c.v_scale, random);
  if (s.page) {
    c.pages = Array({batch, blocks}, DType::i32);
    std::vector<int32_t> order(static_cast<size_t>(batch * blocks));
    for (size_t n = 0; n < order.size(); ++n) order[n] = static_cast<int32_t>(n);
    std::shuffle(order.begin(), order.end(), random);
    for (size_t n = 0; n < order.size(); ++n) c.pages.set(static_cast<int64_t>(n), static_cast<float>(order[n]));
  }
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = s.lengths[static_cast<size_t>(b)];
    c.sequences.push_back({.batch = b,
                           .q_len = s.queries,
                           .k_len = length,
                           .position = length - s.queries,
                           .prefix = std::max<int64_t>(s.prefix, 0)});
  }
  for (int64_t h = 0; h < heads; ++h) {
    c.scale.push_back((1 + 0.1f * static_cast<float>(h)) / std::sqrt(static_cast<float>(s.key_width)));
    c.sink.push_back(0.5f * static_cast<float>(h) - 1);
  }
  if (s.relative) {
    c.relative_min = s.nearest > 0 ? 3 : -s.queries - 1;
    c.relative_count = s.nearest > 0 ? s.nearest : longest + 2 * s.queries + 3;
    std::normal_distribution<float> normal;
    for (int64_t n = 0; n < heads * c.relative_count; ++n) c.relative.push_back(normal(random));
  }
  if (s.slopes) {
    c.slopes = Array({heads}, DType::f32);
    for (int64_t h = 0; h < heads; ++h) c.slopes.set(h, 0.01f * static_cast<float>(h + 1));
  }
  if (s.bias) {
    c.bias = Array({batch, heads, s.queries, longest}, s.bias_type);
    fill(c.bias, random);
  }
  if (s.keep) fill_marks(c.keep = Array({batch, heads, s.queries, longest}, DType::boolean), random, 0.7);
  if (s.drop) {
    fill_marks(c.drop = Array({batch, 1, s.queries, longest}, DType::u8), random, 0.3);
    c.drop.view.stride[1] = 0;
  }
  if (s.documents) {
    c.q_documents = Array({batch, s.queries}, DType::i32);
    c.k_documents = Array({batch, longest}, DType::i32);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < s.queries; ++i) c.q_documents.set(c.q_documents.at(b, i), 2);
      for (int64_t j = 0; j < longest; ++j) {
        c.k_documents.set(c.k_documents.at(b, j), static_cast<float>(j * 4 / std::max<int64_t>(longest, 1)));
      }
    }
  }
  return c;
}

inline double score(const Call& c, int64_t b, int64_t h, int64_t i, int64_t j, double* size) {
  const int64_t key_head = h / c.setup.group;
  const int64_t at = c.key_at(c.k, b, key_head, j);
  double dot = 0, sum = 0;
  for (int64_t d = 0; d < c.setup.key_width; ++d) {
    const double product = c.q.get(c.q.at(b, h, i, d)) * c.k.get(at + d);
    dot += product;
    sum += std::fabs(product);
  }
  double scale = c.scale[static_cast<size_t>(h)];
  if (c.k_scale) scale *= c.k_scale.get(c.key_at(c.k_scale, b, key_head, j));
  double s = dot * scale;
  *size = sum * std::fabs(scale);
  if (c.setup.cap > 0) s = c.setup.cap * std::tanh(s / c.setup.cap);
  const int64_t distance = c.sequences[static_cast<size_t>(b)].position + i - j;
  if (c.setup.relative) {
    const int64_t entry = std::clamp<int64_t>(distance - c.relative_min, 0, c.relative_count - 1);
    s += c.relative[static_cast<size_t>(h * c.relative_count + entry)];
  }
  if (c.slopes) s -= c.slopes.get(h) * std::abs(static_cast<double>(distance));
  if (c.bias) s += c.bias.get(c.bias.at(b, h, i, j));
  return s;
}

struct Row {
  std::vector<double> o;
  double lse = -std::numeric_limits<double>::infinity();
  double o_error = 0, s_error = 0;  // bounds on what f32 sums may add
};

inline Row expected(const Call& c, int64_t b, int64_t h, int64_t i) {
  const int64_t length = c.setup.lengths[static_cast<size_t>(b)], width = c.setup.value_width;
  Row row;
  row.o.assign(static_cast<size_t>(width), 0);
  std::vector<double> s(static_cast<size_t>(length), row.lse);
  double top = c.setup.sink ? c.sink[static_cast<size_t>(h)] : row.lse, size = 0, largest = 0;
  for (int64_t j = 0; j < length; ++j) {
    if (!c.kept(b, h, i, j)) continue;
    s[static_cast<size_t>(j)] = score(c, b, h, i, j, &size);
    largest = std::max({largest, size, std::fabs(s[static_cast<size_t>(j)])});
    top = std::max(top, s[static_cast<size_t>(j)]);
  }
  if (top == row.lse) return row;
  double sum = c.setup.sink ? std::exp(c.sink[static_cast<size_t>(h)] - top) : 0, most = 0;
  std::vector<double> sizes(static_cast<size_t>(width));
  for (int64_t j = 0; j < length; ++j) {
    const double p = std::exp(s[static_cast<size_t>(j)] - top);
    if (p == 0) continue;
    sum += p;
    const int64_t key_head = h / c.setup.group, at = c.key_at(c.v, b, key_head, j);
    const double scale = c.v_scale ? c.v_scale.get(c.key_at(c.v_scale, b, key_head, j)) : 1;
    for (int64_t d = 0; d < width; ++d) {
      const double value = c.v.get(at + d);
      row.o[static_cast<size_t>(d)] += p * scale * value;
      sizes[static_cast<size_t>(d)] += p * std::fabs(value);
      most = std::max(most, std::fabs(scale * value));
    }
  }
  for (double& x : row.o) x /= sum;
  row.lse = top + std::log(sum);
  const double unit = std::ldexp(1.0, -24);
  row.s_error = unit * (16 + std::sqrt(static_cast<double>(c.setup.key_width))) * largest + 16 * unit;
  row.o_error = most * (2 * row.s_error + unit * (16 + std::sqrt(static_cast<double>(length))));
  // Where all is bf16, so may the weights be.
  if (c.setup.query == DType::bf16 && c.setup.cache == DType::bf16)
    row.o_error += 0x1p-9 * *std::max_element(sizes.begin(), sizes.end()) / sum;
  return row;
}

// Every row of a call, sequence by sequence and head by head.
inline std::vector<Row> expected(const Call& c) {
  std::vector<Row> rows;
  for (int64_t b = 0; b < c.batch(); ++b) {
    for (int64_t h = 0; h < c.heads(); ++h) {
      for (int64_t i = 0; i < c.setup.queries; ++i) rows.push_back(expected(c, b, h, i));
    }
  }
  return rows;
}

inline double rounding(DType t) { return t == DType::bf16 ? 0x1p-8 : t == DType::f16 ? 0x1p-11 : 0x1p-24; }

inline void expect_near(const Call& c, const std::vector<Row>& rows, const std::string& where) {
  int64_t wrong = 0;
  for (size_t n = 0; n < rows.size(); ++n) {
    const Row& row = rows[n];
    const auto at = static_cast<int64_t>(n), i = at % c.setup.queries, h = at / c.setup.queries % c.heads(),
               b = at / c.setup.queries / c.heads();
    const double lse = c.lse.get(c.lse.at(b, h, i));
    if (std::isinf(row.lse) ? lse != row.lse
                            : !(std::fabs(lse - row.lse) <= row.s_error + 0x1p-22 * (1 + std::fabs(row.lse)))) {
      ADD_FAILURE() << where << ": lse " << lse << ", expected " << row.lse << " at " << b << ' ' << h << ' ' << i;
      ++wrong;
    }
    for (int64_t d = 0; d < c.setup.value_width && wrong < 5; ++d) {
      const double want = row.o[static_cast<size_t>(d)], got = c.o.get(c.o.at(b, h, i, d));
      if (std::fabs(got - want) <= row.o_error + rounding(c.setup.query) * std::fabs(want)) continue;
      ADD_FAILURE() << where << ": o " << got << ", expected " << want << " at " << b << ' ' << h << ' ' << i << ' '
                    << d;
      ++wrong;
    }
  }
}

inline void on_every_rung(const std::function<void(const std::string&, const kernels::Table&)>& body) {
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    body(step.name, kernels::kernels_of(Device{}));
  }
}

// What is expected does not depend on the rung, and takes longer than all of them.
inline void expect_right_on_every_rung(Call c, const std::string& what) {
  const std::vector<Row> rows = expected(c);
  on_every_rung([&](const std::string& rung, const kernels::Table& table) {
    c.run(table);
    expect_near(c, rows, rung + ", " + what);
  });
}

}  // namespace mh
