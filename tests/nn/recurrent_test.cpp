// Recurrent layers against torch.nn.RNN, LSTM and GRU over packed sequences: rows, states and every gradient.
#include "multihead/nn/recurrent.h"

#include "multihead/ops/shape.h"
#include "tests/harness/refusal.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;
using test::Golden;

Cell cell_of(const Golden& golden) {
  const std::string kind = golden.argument("kind");
  if (kind == "RNN") return golden.argument("nonlinearity") == "relu" ? Cell::relu : Cell::tanh;
  return kind == "LSTM" ? Cell::lstm : Cell::gru;
}

RecurrentNetOptions options_of(const Golden& golden) {
  return {.cell = cell_of(golden),
          .input = golden.number("input_size"),
          .width = golden.number("hidden_size"),
          .layers = golden.number("num_layers"),
          .reading = golden.flag("bidirectional") ? Reading::both : Reading::forward};
}

// (layers · directions, B, H) as states of each.
std::vector<RecurrentState> states_of(const Tensor& h, const Tensor& c) {
  std::vector<RecurrentState> out;
  for (int64_t n = 0; n < h.size(0); ++n) {
    const auto part = [&](const Tensor& all) {
      return all ? reshape(slice(all, 0, n, n + 1), {all.size(1), all.size(2)}) : Tensor();
    };
    out.push_back({part(h), part(c)});
  }
  return out;
}

Tensor stacked(const std::vector<RecurrentState>& states, Tensor RecurrentState::*which) {
  std::vector<Tensor> parts;
  for (const RecurrentState& each : states) {
    const Tensor& part = each.*which;
    parts.push_back(reshape(part, {1, part.size(0), part.size(1)}));
  }
  return concat(parts, 0);
}

class RecurrentGolden : public testing::TestWithParam<std::string> {};

TEST_P(RecurrentGolden, EqualsTorch) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  const RecurrentNet net(Params(*store), options_of(golden));
  const bool lstm = golden.has("input.c");
  const Tensor x = parameter(golden.at("input.x")), h = parameter(golden.at("input.h")),
               c = lstm ? parameter(golden.at("input.c")) : Tensor();
  Tape tape;
  Pass pass = Pass::inference();
  const auto out = net(x, Sequences::of_lengths(golden.lengths("input.lengths")), pass, states_of(h, c));
  std::vector<Tensor> ys{out.rows, stacked(out.end, &RecurrentState::h)};
  Grads dys{golden.at("output_gradient.y"), golden.at("output_gradient.h")};
  EXPECT_LT(error_against(ys[0], golden.at("output")), 1e-5);
  EXPECT_LT(error_against(ys[1], golden.at("output_h")), 1e-5);
  if (lstm) {
    ys.push_back(stacked(out.end, &RecurrentState::c));
    dys.push_back(golden.at("output_gradient.c"));
    EXPECT_LT(error_against(ys[2], golden.at("output_c")), 1e-5);
  }
  Gradients sums;
  tape.backward(ys, dys, sums);
  test::expect_gradients(golden, *store, sums);
  EXPECT_LT(error_against(sums.of(x), golden.at("gradient.input.x")), 1e-5);
  EXPECT_LT(error_against(sums.of(h), golden.at("gradient.input.h")), 1e-5);
  if (lstm) {
    EXPECT_LT(error_against(sums.of(c), golden.at("gradient.input.c")), 1e-5);
  }
}

TEST_P(RecurrentGolden, PackedWeightsGiveTheSameBits) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  RecurrentNet net(Params(*store), options_of(golden));
  const Sequences at = Sequences::of_lengths(golden.lengths("input.lengths"));
  Pass pass = Pass::inference();
  const Tensor plain = net(golden.at("input.x"), at, pass).rows;
  net.pack(DType::f32);
  EXPECT_EQ(error_against(net(golden.at("input.x"), at, pass).rows, plain), 0);
}

INSTANTIATE_TEST_SUITE_P(Torch, RecurrentGolden,
                         testing::Values("recurrent_rnn_tanh", "recurrent_rnn_relu", "recurrent_lstm",
                                         "recurrent_lstm_stacked", "recurrent_gru", "recurrent_gru_stacked"));

TEST(RecurrentNet, ReadingBackwardsIsReadingTheReversedRows) {
  ParamStore first, second;
  RecurrentNetOptions options{.cell = Cell::gru, .input = 3, .width = 4};
  const RecurrentNet forward(Params(first), options);
  options.reading = Reading::backward;
  const RecurrentNet backward(Params(second), options);
  const Tensor x = randn({5, 3}, 1), turned = empty({5, 3});
  for (int64_t row = 0; row < 5; ++row) turned.slice(0, row, row + 1).copy_from(x.slice(0, 4 - row, 5 - row));
  Pass pass = Pass::inference();
  const auto ahead = forward(turned, Sequences::of_lengths({5}), pass),
             back = backward(x, Sequences::of_lengths({5}), pass);
  EXPECT_EQ(error_against(back.end[0].h, ahead.end[0].h), 0);
  EXPECT_EQ(error_against(back.rows.slice(0, 0, 1), ahead.rows.slice(0, 4, 5)), 0);
}

TEST(RecurrentNet, DropsOnlyBetweenLayersAndOnlyInTraining) {
  ParamStore store;
  RecurrentNetOptions options{.cell = Cell::lstm, .input = 3, .width = 8, .dropout = 0.5F};
  const RecurrentNet one(Params(store) / "one", options);
  options.layers = 2;
  const RecurrentNet two(Params(store) / "two", options);
  const Tensor x = randn({6, 3}, 1);
  const Sequences at = Sequences::of_lengths({2, 4});
  const auto rows = [&](const RecurrentNet& net, Pass pass) { return net(x, at, pass).rows; };
  EXPECT_EQ(error_against(rows(one, Pass::training(1)), rows(one, Pass::inference())), 0);
  EXPECT_GT(error_against(rows(two, Pass::training(1)), rows(two, Pass::inference())), 1e-3);
  EXPECT_EQ(error_against(rows(two, Pass::training(1)), rows(two, Pass::training(1))), 0);
}

TEST(RecurrentNet, RefusesSizesAndStatesThatDoNotFit) {
  ParamStore store;
  EXPECT_TRUE(refusal_of([&] { RecurrentNet(Params(store), {.input = 0, .width = 2}); }).says("input 0, width 2"));
  const RecurrentNet net(Params(store), {.input = 2, .width = 2, .layers = 2});
  Pass pass = Pass::inference();
  EXPECT_TRUE(refusal_of([&] {
                net(randn({3, 2}, 1), Sequences::of_lengths({3}), pass, std::vector<RecurrentState>(1));
              }).says("1 states to start from; expected 2"));
}

}  // namespace
}  // namespace mh
