// Batches prepared ahead: those of the task, in its order, from any position, and what its failure looks like.
#include "multihead/train/loader.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "multihead/base/error.h"

namespace mh {
namespace {

struct Numbered : Batch {
  explicit Numbered(const Position& given) : at(given) {}
  int64_t tokens() const override { return 1; }
  Position at;
};

// Three batches an epoch, each knowing its own position; the one after `last` cannot be made.
struct Counting : Task {
  Position last{1000, 0};

  TaskFacts facts() const override { return {}; }
  std::string digest() const override { return {}; }
  int64_t batches(int64_t epochs) const override { return 3 * epochs; }
  std::unique_ptr<Batch> batch(const Position& at) const override {
    if (at == after(last)) throw std::runtime_error("no more");
    return std::make_unique<Numbered>(at);
  }
  Position after(const Position& at) const override {
    check(at.batch >= 0 && at.batch < 3, "an epoch has 3 batches");
    return at.batch < 2 ? Position{at.epoch, at.batch + 1} : Position{at.epoch + 1, 0};
  }
  void make_model(std::shared_ptr<ParamStore>) override {}
  CrossEntropy loss(const Batch&, Pass&) const override { return {}; }
  Verdict validate(const ValidateOptions&) override { return {}; }
  void begin(const std::string&) const override {}
  void save(const std::string&) const override {}
};

Position next_of(Loader& loader) { return dynamic_cast<const Numbered&>(*loader.next()).at; }

TEST(Loader, GivesTheBatchesOfTheTaskInTheirOrder) {
  const Counting task;
  Loader loader(task);
  Position expected;
  for (int n = 0; n < 40; ++n) {
    EXPECT_EQ(loader.position(), expected);
    EXPECT_EQ(next_of(loader), expected);
    expected = task.after(expected);
  }
}

TEST(Loader, GoesOnFromAnyPosition) {
  const Counting task;
  Loader loader(task);
  next_of(loader);  // the thread is ahead by now
  for (const Position at : {Position{7, 2}, Position{0, 0}, Position{3, 1}}) {
    loader.seek(at);
    EXPECT_EQ(loader.position(), at);
    EXPECT_EQ(next_of(loader), at);
    EXPECT_EQ(next_of(loader), task.after(at));
  }
}

TEST(Loader, RefusesAPositionThatIsNotThereAndStaysWhereItWas) {
  const Counting task;
  Loader loader(task);
  next_of(loader);
  EXPECT_THROW(loader.seek({0, 3}), Error);
  EXPECT_EQ(loader.position(), (Position{0, 1}));
  EXPECT_EQ(next_of(loader), (Position{0, 1}));
}

TEST(Loader, WhatTheTaskThrowsComesAfterTheBatchesBeforeIt) {
  Counting task;
  task.last = {1, 1};
  Loader loader(task);
  for (int n = 0; n < 5; ++n) next_of(loader);
  EXPECT_THROW(loader.next(), std::runtime_error);
  loader.seek({0, 0});
  EXPECT_EQ(next_of(loader), (Position{0, 0}));
}

}  // namespace
}  // namespace mh
