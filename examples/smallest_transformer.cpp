// The smallest Transformer: embedding, positions, attention, output. Learns to tell whether a sequence of letters reads
// the same backwards, which no letter tells by itself.
#include <cstdio>
#include <vector>

#include "multihead/multihead.h"

int main() {
  constexpr int64_t kLetters = 8, kWidth = 32, kLength = 6;
  mh::ParamStore store({.seed = 3});
  const mh::Params root(store);
  const mh::Tensor table = root.make("embedding.weight", {kLetters, kWidth}, mh::Init::normal(0.3)).value;
  const mh::Tensor places = root.make("positions.weight", {kLength, kWidth}, mh::Init::normal(0.3)).value;
  const mh::MultiHeadAttention attention(root / "attention", {.model = kWidth, .heads = 4});
  const mh::Linear middle(root / "middle", kLength * kWidth, kWidth), output(root / "output", kWidth, 2);

  // logits (count, 2) of `count` sequences.
  const auto model = [&](const mh::Tensor& ids, int64_t count) {
    mh::Pass pass = mh::Pass::inference();
    const mh::Sequences at = mh::Sequences::uniform(count, kLength);
    mh::Tensor x = mh::add(mh::embedding(table, ids), mh::embedding(places, at.positions));
    x = attention(x, at, pass, {}, {.residual = x});
    return output(middle(mh::reshape(x, {count, kLength * kWidth}), {.activation = mh::Activation::relu}));
  };
  // Half of them mirrored, the other half with one letter changed.
  const auto draw = [&](uint64_t seed, int64_t count, std::vector<int32_t>& answers) {
    const mh::Tensor noise = mh::randn({count, kLength}, seed);
    std::vector<int32_t> ids(static_cast<size_t>(count * kLength));
    answers.clear();
    for (int64_t n = 0; n < count; ++n) {
      for (int64_t i = 0; i < kLength; ++i) {
        const int64_t from = i < kLength / 2 ? i : kLength - 1 - i;
        ids[n * kLength + i] = static_cast<int32_t>(std::abs(noise.item({n, from})) * 1000) % kLetters;
      }
      answers.push_back(n % 2 == 0);
      if (n % 2 == 1) ids[n * kLength + n / 2 % kLength] = (ids[n * kLength + n / 2 % kLength] + 1 + n % 5) % kLetters;
    }
    return mh::tensor(ids, {count * kLength});
  };

  std::vector<mh::Learned> learned;
  for (const auto& param : store.all()) learned.push_back({param->name, param->value});
  mh::AdamW optimiser(learned, {});
  std::vector<int32_t> answers;
  for (uint64_t step = 0; step < 400; ++step) {
    mh::Tape tape;
    const mh::Tensor logits = model(draw(step, 64, answers), 64);
    const mh::CrossEntropy entropy = mh::cross_entropy(logits, mh::tensor(answers, {64}));
    optimiser.step(tape.backward(entropy.loss), 3e-3);
    if (step % 100 == 99) std::printf("step %3d  loss %.4f\n", static_cast<int>(step + 1), entropy.loss.item({}));
  }

  const mh::Tensor logits = model(draw(1000000, 500, answers), 500);
  int right = 0;
  for (int64_t n = 0; n < 500; ++n) right += (logits.item({n, 1}) > logits.item({n, 0})) == (answers[n] == 1);
  std::printf("%d of 500 new sequences told right\n", right);
  return right > 450 ? 0 : 1;
}
