// Recurrent layers one above the other: parameters by torch's names, the input's products, the steps.
#include "multihead/nn/recurrent.h"

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/shape.h"

namespace mh {

RecurrentNet::RecurrentNet(const Params& at, const RecurrentNetOptions& options) : options_(options) {
  check(options.input >= 1 && options.width >= 1 && options.layers >= 1,
        "RecurrentNet: input {}, width {}, layers {}; expected all above 0", options.input, options.width,
        options.layers);
  const int64_t all = kGates[static_cast<size_t>(options.cell)] * options.width;
  const Init init = Init::uniform(1 / std::sqrt(static_cast<double>(options.width)));
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const int64_t input = layer == 0 ? options.input : options.directions() * options.width;
    for (int64_t n = 0; n < options.directions(); ++n) {
      const auto name = [&](const char* what) {
        return fmt::format("{}_l{}{}", what, layer, n == 0 ? "" : "_reverse");
      };
      const Param& w_ih = at.make(name("weight_ih"), {all, input}, init);
      const Param& w_hh = at.make(name("weight_hh"), {all, options.width}, init);
      const Param& b_ih = at.make(name("bias_ih"), {all}, init);
      const Param& b_hh = at.make(name("bias_hh"), {all}, init);
      directions_.push_back({.inputs = Linear(w_ih, &b_ih, Linear::Part{0, all, 0}),
                             .w = &w_hh,
                             .bias = &b_hh,
                             .backward = options.reading == Reading::backward || n == 1});
    }
  }
}

RecurrentResult RecurrentNet::run(const Direction& direction, const Tensor& x, const Sequences& at, Pass& pass,
                                  const RecurrentState& start) const {
  RecurrentWeights weights{.w = direction.w->value, .bias = direction.bias->value};
  const bool packed = direction.packed && direction.packed.dtype() == pass.compute();
  if (packed) weights.packed = direction.packed;
  const bool read_plain = !packed || recording({x, weights.w, start.h, start.c});
  if (read_plain && pass.compute() == DType::bf16)
    weights.copy = direction.w->copy ? direction.w->copy : direction.w->value.detach().to(DType::bf16);
  return recurrent(direction.inputs(cast(x, pass.compute()), {.result = DType::f32}), at.starts, weights,
                   {.cell = options_.cell, .reverse = direction.backward, .start = start});
}

RecurrentNet::Result RecurrentNet::operator()(const Tensor& x, const Sequences& at, Pass& pass,
                                              const std::vector<RecurrentState>& start) const {
  check(start.empty() || start.size() == directions_.size(),
        "RecurrentNet: {} states to start from; expected {}, one for every layer and direction", start.size(),
        directions_.size());
  Result out{.rows = x};
  const auto directions = static_cast<size_t>(options_.directions());
  for (size_t n = 0; n < directions_.size(); n += directions) {
    if (n > 0) out.rows = dropout(out.rows, pass.dropout(options_.dropout));
    std::vector<Tensor> sides;
    for (size_t side = n; side < n + directions; ++side) {
      RecurrentResult result =
          run(directions_[side], out.rows, at, pass, start.empty() ? RecurrentState() : start[side]);
      sides.push_back(result.y);
      out.end.push_back(std::move(result.end));
    }
    out.rows = sides.size() == 1 ? sides[0] : concat(sides, 1);
  }
  return out;
}

void RecurrentNet::pack(DType compute) {
  for (Direction& each : directions_) {
    each.inputs.pack(compute);
    each.packed = prepack(each.w->value.detach().to(compute).transpose(0, 1));
  }
}

}  // namespace mh
