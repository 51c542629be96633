// The order of batches of pairs, against a slow plain telling of it; and that any place in it can be gone to.
#include "multihead/tasks/data/batches.h"

#include <gtest/gtest.h>

#include <map>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/base/random.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using Sentence = std::vector<int32_t>;
using PairList = std::vector<std::pair<Sentence, Sentence>>;

// Bytes as tokens, so that lengths are at will.
Dataset letters(int64_t pairs, uint64_t seed, int64_t longest = 30) {
  Random random(seed);
  const auto word = [&] {
    std::string text;
    const int64_t length = 1 + random.below(longest);
    for (int64_t i = 0; i < length; ++i) text += static_cast<char>('a' + random.below(26));
    return text;
  };
  std::string text;
  for (int64_t i = 0; i < pairs; ++i) text += word() + "\t" + word() + "\n";
  const TemporaryFolder folder;
  const Tokenizer bytes = train_bpe({}, {.vocabulary = 260, .prefix_space = false});
  put_text(folder / "a.tsv", text);
  return Dataset(PairText({folder / "a.tsv"}), bytes, longest + 1);
}

Sentence copy(std::span<const int32_t> ids) { return {ids.begin(), ids.end()}; }

// One epoch, as the header tells it, with nothing clever.
std::vector<PairList> plain_epoch(const Dataset& data, const OrderOptions& options, uint64_t epoch) {
  Random random(options.seed, epoch);
  PairList pairs;
  for (int64_t i = 0; i < data.size(); ++i) pairs.emplace_back(copy(data.source(i)), copy(data.target(i)));
  for (int64_t i = data.size() - 1; i >= 1; --i)
    std::swap(pairs[static_cast<size_t>(i)], pairs[static_cast<size_t>(random.below(i + 1))]);
  std::vector<PairList> batches;
  for (size_t begin = 0; begin < pairs.size(); begin += static_cast<size_t>(options.window)) {
    std::map<std::pair<size_t, size_t>, PairList> by_length;
    for (size_t i = begin; i < pairs.size() && i < begin + static_cast<size_t>(options.window); ++i)
      by_length[{pairs[i].second.size(), pairs[i].first.size()}].push_back(pairs[i]);
    PairList batch;
    size_t tokens = 0;
    for (const auto& [lengths, those] : by_length) {
      for (const auto& pair : those) {
        if (!batch.empty() && tokens + lengths.first + 1 > static_cast<size_t>(options.tokens_per_batch)) {
          batches.push_back(batch);
          batch.clear();
          tokens = 0;
        }
        batch.push_back(pair);
        tokens += lengths.first + 1;
      }
    }
    batches.push_back(batch);
  }
  for (size_t i = batches.size() - 1; i >= 1; --i)
    std::swap(batches[i], batches[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
  return batches;
}

Sentence ids(const Tensor& tensor) { return {tensor.data<int32_t>(), tensor.data<int32_t>() + tensor.count()}; }

std::vector<Sentence> sentences(const TokenBatch& batch) {
  std::vector<Sentence> out;
  const Sentence all = ids(batch.ids), starts = ids(batch.at.starts);
  for (size_t b = 0; b + 1 < starts.size(); ++b) out.emplace_back(all.begin() + starts[b], all.begin() + starts[b + 1]);
  return out;
}

void expect_batch(const PairBatch& batch, const PairList& expected) {
  const std::vector<Sentence> sources = sentences(batch.source), inputs = sentences(batch.input);
  const std::vector<Sentence> labels = sentences({batch.labels, batch.input.at});
  ASSERT_EQ(sources.size(), expected.size());
  ASSERT_EQ(inputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    auto [source, label] = expected[i];
    Sentence input = label;
    source.push_back(2);
    label.push_back(2);
    input.insert(input.begin(), 1);
    EXPECT_EQ(sources[i], source);
    EXPECT_EQ(inputs[i], input);
    EXPECT_EQ(labels[i], label);
  }
}

bool same(const PairBatch& a, const PairBatch& b) {
  return ids(a.source.ids) == ids(b.source.ids) && ids(a.source.at.starts) == ids(b.source.at.starts) &&
         ids(a.source.at.positions) == ids(b.source.at.positions) && ids(a.input.ids) == ids(b.input.ids) &&
         ids(a.input.at.starts) == ids(b.input.at.starts) && ids(a.labels) == ids(b.labels);
}

// One batch after the other.
class Walk {
 public:
  Walk(const Dataset& data, const OrderOptions& options) : data_(data), order_(lengths_of(data), options) {}
  PairBatch next() {
    PairBatch batch = pack_pairs(data_, order_.examples(at_), {});
    at_ = order_.after(at_);
    return batch;
  }
  Position position() const { return at_; }
  void seek(const Position& at) {
    order_.after(at);
    at_ = at;
  }
  int64_t batches(int64_t epoch) const { return order_.in_epoch(epoch); }
  int64_t total_batches(int64_t epochs) const { return order_.in_epochs(epochs); }

 private:
  const Dataset& data_;
  BatchOrder order_;
  Position at_;
};

TEST(BatchOrder, GivesTheBatchesOfThePlainTelling) {
  struct Case {
    int64_t pairs;
    OrderOptions options;
  };
  for (const Case& c : {Case{500, {.tokens_per_batch = 100, .window = 128, .seed = 7}},
                        Case{500, {.tokens_per_batch = 64, .window = 500, .seed = 8}},
                        Case{300, {.tokens_per_batch = 90, .window = 100000, .seed = 9}},
                        Case{257, {.tokens_per_batch = 100000, .window = 64, .seed = 10}},
                        Case{40, {.tokens_per_batch = 1, .window = 7}}, Case{1, {}}, Case{2, {.window = 1}}}) {
    const Dataset data = letters(c.pairs, 3);
    Walk loader(data, c.options);
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<PairList> expected = plain_epoch(data, c.options, epoch);
      EXPECT_EQ(loader.batches(static_cast<int64_t>(epoch)), static_cast<int64_t>(expected.size()));
      for (size_t b = 0; b < expected.size(); ++b) {
        EXPECT_EQ(loader.position(), (Position{static_cast<int64_t>(epoch), static_cast<int64_t>(b)}));
        expect_batch(loader.next(), expected[b]);
      }
    }
  }
}

TEST(BatchOrder, BatchesKeepToTheBudgetUnlessOnePairIsLonger) {
  const Dataset data = letters(400, 5);
  Walk loader(data, {.tokens_per_batch = 20, .window = 100});
  int64_t full = 0, alone = 0;
  for (int64_t b = loader.batches(0); b > 0; --b) {
    const PairBatch batch = loader.next();
    if (batch.target_tokens() > 20) {
      EXPECT_EQ(batch.input.at.count(), 1);
      ++alone;
    }
    full += batch.input.at.count() > 1 ? 1 : 0;
  }
  EXPECT_GT(full, 0);
  EXPECT_GT(alone, 0);
}

TEST(BatchOrder, GoesOnFromAnyPosition) {
  const Dataset data = letters(120, 6);
  const OrderOptions options{.tokens_per_batch = 100, .window = 50, .seed = 11};
  Walk whole(data, options);
  std::vector<Position> positions;
  std::vector<PairBatch> batches;
  while (whole.position().epoch < 3) {
    positions.push_back(whole.position());
    batches.push_back(whole.next());
  }
  Walk other(data, options);
  for (size_t i = 0; i < batches.size(); i += 5) {
    other.seek(positions[i]);
    for (size_t j = i; j < batches.size() && j < i + 12; ++j) {
      ASSERT_EQ(other.position(), positions[j]);
      ASSERT_TRUE(same(other.next(), batches[j])) << i << " " << j;
    }
  }
}

TEST(BatchOrder, DoesNotDependOnTheNumberOfThreads) {
  const Dataset data = letters(200, 7);
  const int before = threads();
  const auto all = [&](int n) {
    set_threads(n);
    Walk loader(data, {.tokens_per_batch = 60, .window = 64});
    std::vector<PairBatch> out;
    for (int64_t b = loader.total_batches(2); b > 0; --b) out.push_back(loader.next());
    return out;
  };
  const auto one = all(1), four = all(4);
  set_threads(before);
  ASSERT_EQ(one.size(), four.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same(one[i], four[i])) << i;
}

TEST(BatchOrder, SeedsAndEpochsDiffer) {
  const Dataset data = letters(200, 8);
  Walk a(data, {.seed = 1}), b(data, {.seed = 2}), later(data, {.seed = 1});
  later.seek({1, 0});
  const PairBatch first = a.next();
  EXPECT_FALSE(same(first, b.next()));
  EXPECT_FALSE(same(first, later.next()));
}

TEST(BatchOrder, TellsTheBatchesOfAllEpochsInAdvance) {
  const Dataset data = letters(300, 9);
  for (const int64_t window : {40, 1000}) {
    Walk loader(data, {.tokens_per_batch = 70, .window = window});
    const int64_t total = loader.total_batches(4);
    int64_t sum = 0;
    for (int64_t epoch = 0; epoch < 4; ++epoch) sum += loader.batches(epoch);
    EXPECT_EQ(total, sum);
    for (int64_t i = 0; i < total; ++i) loader.next();
    EXPECT_EQ(loader.position(), (Position{4, 0}));
  }
}

TEST(BatchOrder, RefusesWhatCannotBe) {
  const Dataset data = letters(10, 10);
  const Dataset none;
  EXPECT_THROW(Walk(none, {}), Error);
  EXPECT_THROW(Walk(data, {.tokens_per_batch = 0}), Error);
  EXPECT_THROW(Walk(data, {.window = 0}), Error);
  Walk loader(data, {});
  const PairBatch first = loader.next();
  EXPECT_THROW(loader.seek({0, 1}), Error);  // there is one batch
  EXPECT_THROW(loader.seek({-1, 0}), Error);
  EXPECT_THROW(loader.seek({0, -1}), Error);
  EXPECT_EQ(loader.position(), (Position{1, 0}));
}

}  // namespace
}  // namespace mh
