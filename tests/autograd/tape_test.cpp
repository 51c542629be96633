// The tape: what it records, refuses, and adds up.
#include "multihead/autograd/tape.h"

#include <gtest/gtest.h>

namespace mh {
namespace {

// y = factor · x, recorded.
Tensor times(const Tensor& x, float factor) {
  const Tensor y = x.detach().clone();
  for (int64_t i = 0; i < y.count(); ++i) y.data<float>()[i] *= factor;
  return record("times", y, {x}, [factor](const Tensor& dy) {
    const Tensor dx = dy.clone();
    for (int64_t i = 0; i < dx.count(); ++i) dx.data<float>()[i] *= factor;
    return Grads{dx};
  });
}

// y = a + b, whose derivative hands the same memory to both.
Tensor plus(const Tensor& a, const Tensor& b) {
  const Tensor y = a.detach().clone();
  for (int64_t i = 0; i < y.count(); ++i) y.data<float>()[i] += b.data<float>()[i];
  return record("plus", y, {a, b}, [](const Tensor& dy) { return Grads{dy, dy}; });
}

Tensor sum(const Tensor& x) {
  double total = 0;
  for (int64_t i = 0; i < x.count(); ++i) total += x.data<float>()[i];
  return record("sum", full({1}, total), {x},
                [shape = x.shape()](const Tensor& dy) { return Grads{full(shape, dy.item({0}))}; });
}

TEST(Tape, chain_multiplies_and_paths_add) {
  const Tensor w = parameter(full({3}, 2));
  Tape tape;
  const Tensor y = plus(times(w, 3), times(w, 5));
  const Gradients g = tape.backward(sum(y));
  EXPECT_EQ(g.of(w).item({1}), 8);
}

TEST(Tape, shared_memory_of_two_gradients_is_not_added_to) {
  const Tensor w = parameter(full({2}, 1));
  Tape tape;
  const Tensor doubled = plus(w, w);
  const Tensor y = plus(doubled, w);  // dy reaches `doubled` and w as one memory
  EXPECT_EQ(tape.backward(sum(y)).of(w).item({0}), 3);
}

TEST(Tape, what_the_loss_does_not_come_from_is_passed_over) {
  const Tensor w = parameter(full({2}, 1));
  Tape tape;
  int calls = 0;
  record("aside", w.detach().clone(), {w}, [&](const Tensor& dy) {
    ++calls;
    return Grads{dy};
  });
  EXPECT_EQ(tape.backward(sum(times(w, 3))).of(w).item({0}), 3);
  EXPECT_EQ(calls, 0);
}

TEST(Tape, nothing_is_recorded_without_a_tape_or_a_trace) {
  const Tensor w = parameter(full({2}, 1));
  EXPECT_EQ(times(w, 2).trace(), 0u);
  Tape tape;
  EXPECT_EQ(times(full({2}, 1), 2).trace(), 0u);
  EXPECT_EQ(times(w.detach(), 2).trace(), 0u);
  EXPECT_EQ(tape.size(), 0u);
  {
    const NoTape closed;
    EXPECT_EQ(times(w, 2).trace(), 0u);
  }
  EXPECT_NE(times(w, 2).trace(), 0u);
}

TEST(Tape, innermost_tape_records) {
  const Tensor w = parameter(full({1}, 1));
  Tape outer;
  {
    Tape inner;
    times(w, 2);
    EXPECT_EQ(inner.size(), 1u);
  }
  EXPECT_EQ(outer.size(), 0u);
  times(w, 2);
  EXPECT_EQ(outer.size(), 1u);
}

TEST(Tape, view_of_a_traced_tensor_is_refused) {
  const Tensor w = parameter(full({4}, 1));
  Tape tape;
  for (const Tensor& view : {w.slice(0, 0, 2), w.reshape({2, 2}), w.clone(), w.to(DType::bf16)}) {
    EXPECT_EQ(view.trace(), kCutTrace);
    EXPECT_THROW(record("op", full({1}, 0), {view}, [](const Tensor&) { return Grads{{}}; }), Error);
  }
}

TEST(Tape, op_without_a_derivative_throws_by_name_on_backward) {
  const Tensor w = parameter(full({1}, 1));
  Tape tape;
  const Tensor y = refuse_gradient("argmax", full({1}, 0), {w});
  try {
    tape.backward(y);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(error.what()).find("argmax"), std::string::npos);
  }
}

TEST(Tape, gradients_of_several_losses_add_up) {
  const Tensor w = parameter(full({2}, 1));
  Gradients sums;
  for (int step = 0; step < 3; ++step) {
    Tape tape;
    tape.backward(sum(times(w, 2)), sums);
  }
  EXPECT_EQ(sums.of(w).item({0}), 6);
  EXPECT_EQ(sums.size(), 1u);
}

// y = factor · x, whose derivative is added to what x has gathered; `grown` counts how often there was something.
Tensor times_adding(const Tensor& x, float factor, int& grown) {
  const Tensor y = x.detach().clone();
  for (int64_t i = 0; i < y.count(); ++i) y.data<float>()[i] *= factor;
  return record_adding("times_adding", y, {x}, [factor, &grown](const Tensor& dy, const Tensor& gathered) {
    const Tensor dx = gathered ? gathered : zeros(dy.shape());
    grown += gathered ? 1 : 0;
    for (int64_t i = 0; i < dx.count(); ++i) dx.data<float>()[i] += factor * dy.data<float>()[i];
    return Grads{dx};
  });
}

TEST(Tape, derivative_is_added_where_the_gradient_gathers) {
  const Tensor w = parameter(full({2}, 1));
  int grown = 0;
  Gradients sums;
  {
    Tape tape;
    tape.backward(sum(plus(times_adding(w, 2, grown), times_adding(w, 3, grown))), sums);
  }
  EXPECT_EQ(grown, 1);
  EXPECT_EQ(sums.of(w).item({1}), 5);
  const Tensor held = sums.of(w);
  Tape tape;
  tape.backward(sum(times_adding(w, 7, grown)), sums);
  EXPECT_EQ(grown, 1) << "the caller holds it";
  EXPECT_EQ(held.item({1}), 5);
  EXPECT_EQ(sums.of(w).item({1}), 12);
}

TEST(Tape, gradient_that_another_reads_does_not_grow) {
  const Tensor w = parameter(full({2}, 1)), dy = full({2}, 4);
  int grown = 0;
  Gradients sums;
  Tape tape;
  const Tensor x = times(w, 1);
  // dy reaches x and its reader as one memory, and the caller holds it.
  tape.backward({plus(x, times_adding(x, 2, grown))}, {dy}, sums);
  EXPECT_EQ(grown, 0);
  EXPECT_EQ(dy.item({0}), 4);
  EXPECT_EQ(sums.of(w).item({0}), 12);
}

TEST(Tape, unused_output_has_an_empty_gradient) {
  const Tensor w = parameter(full({2}, 1));
  Tape tape;
  bool empty_seen = false;
  const auto ys =
      record("two", std::vector<Tensor>{full({2}, 1), full({2}, 2)}, {w}, [&](const std::vector<Tensor>& dys) {
        empty_seen = !dys[1];
        return Grads{dys[0]};
      });
  tape.backward(sum(ys[0]));
  EXPECT_TRUE(empty_seen);
}

TEST(Tape, loss_must_be_recorded_and_single) {
  const Tensor w = parameter(full({2}, 1));
  Tape tape;
  EXPECT_THROW(tape.backward(times(w, 1)), Error);
  EXPECT_THROW(tape.backward(full({1}, 0)), Error);
}

}  // namespace
}  // namespace mh
