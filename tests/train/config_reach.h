// What the tests of configuration keys share: runs with one key changed, and what is looked at.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "multihead/base/parallel.h"
#include "multihead/io/checkpoint.h"
#include "multihead/train/config/config_keys.h"
#include "tests/tasks/made_questions.h"
#include "tests/train/observed_run.h"
#include "tests/train/small_run.h"

namespace mh {

using Prepare = std::function<void(TrainConfig&)>;
using Expect = std::function<void(const Seen& before, const Seen& now)>;

struct Reach {
  detail::ConfigValue value;
  Expect expect;
  Prepare prepare{};  // of both runs
};

class ConfigReach : public SmallRun {
 protected:
  ConfigReach() : threads_before_(threads()) {
    std::ofstream three(folder_ / "three.tsv"), ten(folder_ / "ten.tsv"), nulls(folder_ / "nulls.txt"),
        twenty(folder_ / "twenty.txt");
    std::string labelled;
    for (int i = 0; i < 60; ++i)
      labelled += fmt::format("one two {0}\t{1}\tthree four {0} {1}\n", i, i % 3 == 0 ? "yes" : "no");
    put_text(folder_ / "labelled.tsv", labelled);
    put_text(folder_ / "broken.tsv", labelled + "one column\n");
    for (int i = 0; i < 80; ++i) three << "1 2\teins zwei\t" << i << " acht acht\n";
    for (int i = 0; i < 10; ++i) ten << "1 2\teins zwei\n";
    for (int i = 0; i < 200; ++i) nulls << "null\n";
    for (int i = 0; i < 20; ++i) twenty << "acht null acht\n";
  }
  ~ConfigReach() override { set_threads(threads_before_); }

  TrainConfig base() const {
    TrainConfig c = config("base", 6);
    c.train.ema = 0;
    c.train.validate_every = 3;
    c.train.threads = 1;
    c.optimizer.warmup = 2;
    return c;
  }
  // The weights before the first step: a step so small that it changes none.
  std::map<std::string, Tensor> beginning(const TrainConfig& config) const {
    TrainConfig c = config;
    c.train.output = folder_ / "beginning";
    c.optimizer.learning_rate = 1e-30;
    std::filesystem::remove_all(c.train.output);
    return observe(c).weights();
  }
  double moved(const Seen& seen) const {
    double sum = 0;
    const auto begin = beginning(seen.config), end = seen.weights();
    for (const auto& [name, tensor] : begin)
      for (int64_t i = 0; i < tensor.count(); ++i)
        sum += std::pow(double{end.at(name).data<float>()[i]} - tensor.data<float>()[i], 2);
    return std::sqrt(sum);
  }

  // A run of image_class with six pictures of 8 x 8 pixels.
  void pictured(TrainConfig& c) const;
  // Of speech_class with six recordings.
  void spoken(TrainConfig& c) const;

  // A run of classify.
  Prepare labelled(const std::string& file = "labelled.tsv") const {
    return [path = folder_ / file](TrainConfig& c) {
      c.task.kind = TaskKind::classify;
      c.data.train = c.data.valid = path;
    };
  }

  // A run of answer, whose contexts are longer than a window.
  Prepare asked() const {
    return [path = folder_ / "questions.json"](TrainConfig& c) {
      test::write_questions(path, {.count = 20, .words = 60});
      c.task.kind = TaskKind::answer;
      c.recurrent.kind = ModelKind::bert;
      c.tokenizer.kind = TokenizerKind::words;
      c.data.train = c.data.valid = path;
    };
  }

  // A run of recommend; columns of users and items in two further places.
  Prepare recommending() const {
    return [path = folder_ / "histories.tsv"](TrainConfig& c) {
      std::string rows;
      for (int i = 0; i < 60; ++i) rows += fmt::format("x{}\ty{}\t{}\tu{}\ti{}\n", i % 6, i % 10, -i, i % 7, i % 8);
      put_text(path, rows);
      c.task.kind = TaskKind::recommend;
      c.data.train = path;
      c.data.valid.clear();
      c.data.user = "4";
      c.data.item = "5";
    };
  }

  std::map<std::string, Reach> task_keys() const;
  std::map<std::string, Reach> model_keys() const;
  std::map<std::string, Reach> text_keys() const;
  std::map<std::string, Reach> data_keys() const;
  std::map<std::string, Reach> optimizer_keys() const;
  std::map<std::string, Reach> train_keys() const;
  // Changes every key of the section, each alone, and looks at what `reaches` says of it.
  void walk(const std::string& section, const std::map<std::string, Reach>& reaches) const;

 private:
  int threads_before_;
};

// As many parameters, and another first loss.
inline void another_function(const Seen& before, const Seen& now) {
  EXPECT_EQ(now.start.parameters, before.start.parameters);
  EXPECT_NE(now.loss(0), before.loss(0));
}
inline Expect more_parameters(int64_t more) {
  return
      [more](const Seen& before, const Seen& now) { EXPECT_EQ(now.start.parameters, before.start.parameters + more); };
}
inline void fewer_parameters(const Seen& before, const Seen& now) {
  EXPECT_LT(now.start.parameters, before.start.parameters);
  EXPECT_NE(now.loss(0), before.loss(0));
}
inline void fewer_pairs(const Seen& before, const Seen& now) {
  EXPECT_LT(now.start.data.train, before.start.data.train);
  EXPECT_GT(now.start.data.train, 0);
}
// Bias correction makes the first step the same; the second is not.
inline void from_the_second_step(const Seen& before, const Seen& now) {
  EXPECT_EQ(now.loss(0), before.loss(0));
  EXPECT_NEAR(now.loss(1), before.loss(1), 1e-5);
  EXPECT_GT(std::abs(now.loss(3) - before.loss(3)), 1e-5);
}

}  // namespace mh
