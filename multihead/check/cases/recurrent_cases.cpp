// Cases of recurrent cells and of additive attention's scores.
#include <cmath>

#include "multihead/check/op_case.h"
#include "multihead/ops/recurrent.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct RecurrentCase {
  const char* name;
  Cell cell;
  std::vector<int64_t> lengths;
  int64_t width;
  bool reverse = false;

  size_t gates() const { return static_cast<size_t>(kGates[static_cast<size_t>(cell)]); }
  Tensor starts() const {
    std::vector<int32_t> out{0};
    for (const int64_t length : lengths) out.push_back(out.back() + static_cast<int32_t>(length));
    return tensor<int32_t>(out, {static_cast<int64_t>(out.size())});
  }
};

// One step of one sequence: x (G · H) of its row, w and bias as they are; h and c are taken on.
void step(const RecurrentCase& of, const double* x, const std::vector<Numbers>& in, Numbers& h, Numbers& c) {
  const auto width = static_cast<size_t>(of.width);
  Numbers p(of.gates() * width), before = h;
  for (size_t g = 0; g < p.size(); ++g) {
    p[g] = in[2][g];
    for (size_t k = 0; k < width; ++k) p[g] += in[1][g * width + k] * before[k];
  }
  for (size_t i = 0; i < width; ++i) {
    const auto a = [&](size_t gate) { return x[gate * width + i] + p[gate * width + i]; };
    if (of.cell == Cell::tanh) h[i] = std::tanh(a(0));
    if (of.cell == Cell::relu) h[i] = std::max(0.0, a(0));
    if (of.cell == Cell::lstm) {
      c[i] = logistic(a(1)) * c[i] + logistic(a(0)) * std::tanh(a(2));
      h[i] = logistic(a(3)) * std::tanh(c[i]);
    }
    if (of.cell == Cell::gru) {
      const double n = std::tanh(x[2 * width + i] + logistic(a(0)) * p[2 * width + i]), z = logistic(a(1));
      h[i] = (1 - z) * n + z * before[i];
    }
  }
}

// y, then the last h of every sequence, then the last c of LSTM.
Numbers plain_recurrent(const RecurrentCase& of, const std::vector<Numbers>& in) {
  const auto width = static_cast<size_t>(of.width), all = of.gates() * width;
  size_t rows = 0;
  for (const int64_t length : of.lengths) rows += static_cast<size_t>(length);
  Numbers y(rows * width), last_h, last_c;
  size_t begin = 0;
  for (size_t b = 0; b < of.lengths.size(); ++b) {
    const auto from = static_cast<std::ptrdiff_t>(b * width), to = from + static_cast<std::ptrdiff_t>(width);
    Numbers h(in[3].begin() + from, in[3].begin() + to), c;
    if (of.cell == Cell::lstm) c.assign(in[4].begin() + from, in[4].begin() + to);
    const auto length = static_cast<size_t>(of.lengths[b]);
    for (size_t t = 0; t < length; ++t) {
      const size_t row = of.reverse ? begin + length - 1 - t : begin + t;
      step(of, in[0].data() + row * all, in, h, c);
      std::copy(h.begin(), h.end(), y.begin() + static_cast<std::ptrdiff_t>(row * width));
    }
    begin += length;
    last_h.insert(last_h.end(), h.begin(), h.end());
    last_c.insert(last_c.end(), c.begin(), c.end());
  }
  y.insert(y.end(), last_h.begin(), last_h.end());
  y.insert(y.end(), last_c.begin(), last_c.end());
  return y;
}

OpCase recurrent_case(const RecurrentCase& of) {
  int64_t rows = 0;
  for (const int64_t length : of.lengths) rows += length;
  const auto count = static_cast<int64_t>(of.lengths.size()), all = static_cast<int64_t>(of.gates()) * of.width;
  // The kink of relu is no place for differences.
  const bool kinked = of.cell == Cell::relu;
  std::vector<OpInput> inputs{{Shape{rows, all}, kinked ? 3.0 : 0.0, kinked ? 0.2 : 1.0},
                              {Shape{all, of.width}, 0, kinked ? 0.02 : 0.3},
                              {Shape{all}, 0, kinked ? 0.1 : 0.5},
                              {Shape{count, of.width}, 0, 0.5}};
  if (of.cell == Cell::lstm) inputs.push_back({Shape{count, of.width}});
  return {.label = fmt::format("{} of width {} over {}{}", of.name, of.width, fmt::join(of.lengths, ", "),
                               of.reverse ? ", backwards" : ""),
          .inputs = inputs,
          .op =
              [of](auto& x) {
                const RecurrentState start{x[3], x.size() > 4 ? x[4] : Tensor()};
                const RecurrentResult out = recurrent(x[0], of.starts(), {.w = x[1], .bias = x[2]},
                                                      {.cell = of.cell, .reverse = of.reverse, .start = start});
                std::vector<Tensor> parts{out.y, out.end.h};
                if (out.end.c) parts.push_back(out.end.c);
                return concat(parts, 0);
              },
          .reference = [of](auto& x) { return plain_recurrent(of, x); },
          .types = {DType::f32},
          .terms = std::max(of.width, rows) * 4};
}

OpCase additive_case(const std::vector<int64_t>& lengths, int64_t width) {
  const RecurrentCase of{"", Cell::tanh, lengths, width};
  int64_t rows = 0;
  for (const int64_t length : lengths) rows += length;
  return {.label = fmt::format("additive_scores of width {} over {}", width, fmt::join(lengths, ", ")),
          .inputs = {{Shape{static_cast<int64_t>(lengths.size()), width}}, {Shape{rows, width}}, {Shape{width}}},
          .op = [of](auto& x) { return additive_scores(x[0], x[1], x[2], of.starts()); },
          .reference =
              [lengths, width](auto& x) {
                Numbers s;
                for (size_t b = 0; b < lengths.size(); ++b)
                  for (int64_t j = 0; j < lengths[b]; ++j) {
                    double sum = 0;
                    for (size_t a = 0; a < static_cast<size_t>(width); ++a)
                      sum += x[2][a] * std::tanh(x[0][b * static_cast<size_t>(width) + a] +
                                                 x[1][s.size() * static_cast<size_t>(width) + a]);
                    s.push_back(sum);
                  }
                return s;
              },
          .types = {DType::f32},
          .terms = std::max(width, rows)};
}

}  // namespace

std::vector<OpCase> recurrent_cases() {
  const RecurrentCase kCells[] = {{"rnn", Cell::tanh, {}, 0},
                                  {"relu rnn", Cell::relu, {}, 0},
                                  {"lstm", Cell::lstm, {}, 0},
                                  {"gru", Cell::gru, {}, 0}};
  std::vector<OpCase> cases;
  for (const RecurrentCase& cell : kCells) {
    const auto add = [&](const std::vector<int64_t>& lengths, int64_t width, bool reverse) {
      RecurrentCase of = cell;
      of.lengths = lengths;
      of.width = width;
      of.reverse = reverse;
      cases.push_back(recurrent_case(of));
    };
    for (const int64_t width : {1, 7, 16, 17}) add({3, 1, 0, 4}, width, width == 7);
    add({1, 1}, 5, false);
    add({0, 0}, 3, false);
    add({}, 3, true);
  }
  cases.push_back(additive_case({3, 0, 5}, 17));
  cases.push_back(additive_case({2}, 1));
  cases.push_back(additive_case({4, 1}, 70));
  cases.push_back(additive_case({}, 4));
  return cases;
}

}  // namespace mh
