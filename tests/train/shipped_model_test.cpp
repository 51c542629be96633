// Which weights a run leaves as its model: judged again here, and compared with the formula of a running mean.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "multihead/generate/text/translator.h"
#include "multihead/io/checkpoint.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/translation.h"
#include "multihead/train/trainer.h"
#include "multihead/train/training_state.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

class ShippedModels : public SmallRun {
 protected:
  // Big steps: the loss is soon worse than it was.
  TrainConfig restless(const std::string& output, int64_t steps) const {
    TrainConfig c = config(output, steps);
    c.optimizer.learning_rate = 1;
    c.optimizer.schedule = ScheduleKind::constant;
    c.train.validate_every = 1;
    c.train.ema = 0;
    return c;
  }

  // What a run says of its validations.
  TrainOutcome run(const TrainConfig& c, bool resume = false) {
    TrainRequest request{.config = c, .resume = resume};
    request.events.on_validation = [&](const TrainValidation& v) { validations_.push_back(v); };
    return train(request);
  }

  double loss_of(const std::string& folder, Transformer& model) const {
    const PairText text({.source = folder_ / "valid.tsv"});
    const Tokenizer tokenizer = Tokenizer::load(folder + "/tokenizer.json");
    const Corpus corpus{.tokenizer = tokenizer, .train = {}, .valid = Dataset(text, tokenizer, 32), .valid_text = text};
    return score_translation(model, corpus, {}).loss;
  }
  double loss_of_shipped(const std::string& folder) const {
    Transformer model = load_transformer(folder + "/model.safetensors");
    return loss_of(folder, model);
  }
  // The loss of the tensors of a checkpoint whose names begin with `prefix`.
  double loss_of_saved(const std::string& folder, const std::string& checkpoint, const std::string& prefix) const {
    NamedTensors weights;
    for (const auto& [name, tensor] : read_checkpoint(checkpoint).tensors)
      if (name.starts_with(prefix)) weights[name.substr(prefix.size())] = tensor;
    const TransformerConfig config = load_transformer(folder + "/model.safetensors").config();
    Transformer model(config, std::make_shared<ParamStore>(weights));
    return loss_of(folder, model);
  }

  std::vector<TrainValidation> validations_;
};

TEST_F(ShippedModels, TheBestIsShippedNotTheLast) {
  const TrainOutcome outcome = run(restless("run", 10));
  ASSERT_EQ(validations_.size(), 10u);
  double least = INFINITY;
  for (const TrainValidation& v : validations_) {
    EXPECT_EQ(v.best, v.loss < least) << v.step;
    least = std::min(least, v.loss);
  }
  ASSERT_GT(validations_.back().loss, 1.1 * least);
  EXPECT_EQ(outcome.best_validation, least);
  EXPECT_FALSE(outcome.mean_shipped);
  EXPECT_NEAR(loss_of_shipped(outcome.folder), least, 1e-6 * least);
}

TEST_F(ShippedModels, TheCheckpointOfTheBestIsKeptBesideTheNewest) {
  TrainConfig c = restless("run", 10);
  c.train.save_every = 1;
  run(c);
  int64_t best = 0;
  for (const TrainValidation& v : validations_)
    if (v.best) best = v.step;
  ASSERT_LT(best, 9);
  const auto path = [&](int64_t step) {
    return fmt::format("{}/checkpoints/step-{:08}.safetensors", c.train.output, step);
  };
  EXPECT_EQ(list_checkpoints(c.train.output + "/checkpoints"), (std::vector{path(10), path(9), path(best)}));
  EXPECT_EQ(read_checkpoint(path(best)).step, best);
  EXPECT_NEAR(loss_of_saved(c.train.output, path(best), "model."), validations_[static_cast<size_t>(best) - 1].loss,
              1e-5);
}

TEST_F(ShippedModels, TheBestIsSavedWhereverItFalls) {
  TrainConfig c = restless("run", 10);
  c.train.save_every = 1000;
  c.train.keep = 1;
  run(c);
  int64_t best = 0;
  for (const TrainValidation& v : validations_)
    if (v.best) best = v.step;
  ASSERT_LT(best, 10);
  std::vector<std::string> names;
  for (const std::string& each : list_checkpoints(c.train.output + "/checkpoints"))
    names.push_back(fs::path(each).stem());
  EXPECT_EQ(names, (std::vector{std::string("step-00000010"), fmt::format("step-{:08}", best)}));
}

TEST_F(ShippedModels, WithoutAnIntervalEveryEpochIsValidated) {
  for (const int64_t accumulate : {1, 3}) {
    TrainConfig c = config(fmt::format("run-{}", accumulate), 0);
    c.train.epochs = 3;
    c.train.validate_every = 0;
    c.train.accumulate = accumulate;
    c.data.tokens_per_batch = 60;
    std::map<int64_t, int64_t> epoch_of;  // by step
    validations_.clear();
    TrainRequest request{.config = c};
    request.events.on_step = [&](const TrainStep& step) { epoch_of[step.step] = step.epoch; };
    request.events.on_validation = [&](const TrainValidation& v) { validations_.push_back(v); };
    train(request);
    ASSERT_GT(epoch_of.size(), 5u);
    ASSERT_GE(validations_.size(), 3u);
    for (const TrainValidation& v : validations_) {
      const auto next = epoch_of.find(v.step + 1);
      if (accumulate == 1)
        EXPECT_TRUE(next == epoch_of.end() || next->second == epoch_of[v.step] + 1) << v.step;
      else  // a step may begin in one epoch and end in the next
        EXPECT_TRUE(next == epoch_of.end() || next->second > epoch_of[v.step]) << v.step;
    }
    EXPECT_LE(validations_.size(), 4u);
  }
}

TEST_F(ShippedModels, PatienceWorksWithTheDefaultInterval) {
  TrainConfig c = restless("run", 0);
  c.train.validate_every = 0;
  c.train.epochs = 100;
  c.train.patience = 2;
  run(c);
  ASSERT_GT(validations_.size(), 2u);
  EXPECT_LT(validations_.size(), 100u);
  EXPECT_FALSE(validations_.back().best);
  EXPECT_FALSE(validations_[validations_.size() - 2].best);
}

TEST_F(ShippedModels, PatienceCountsFromTheLastBest) {
  detail::TrainingState state;
  const auto note = [&](double loss) {
    ++state.steps;
    return state.note_validation(loss);
  };
  EXPECT_TRUE(note(3));
  EXPECT_FALSE(note(4));
  EXPECT_EQ(state.worse, 1);
  EXPECT_TRUE(note(2));
  EXPECT_EQ(state.worse, 0);
  EXPECT_FALSE(note(2));
  EXPECT_FALSE(note(NAN));
  EXPECT_FALSE(note(INFINITY));
  EXPECT_EQ(state.worse, 3);
  EXPECT_EQ(state.best, 2);
  EXPECT_EQ(state.best_step, 3);
  detail::TrainingState broken;
  EXPECT_FALSE(broken.note_validation(NAN));
  EXPECT_EQ(broken.best_step, 0);
  broken.steps = 5;
  EXPECT_TRUE(broken.note_validation(7));
  EXPECT_EQ(broken.best_step, 5);
}

TEST_F(ShippedModels, AStoppedRunLeavesAUsableModel) {
  for (const bool valid : {true, false}) {
    TrainConfig c = config(valid ? "judged" : "unjudged", 50);
    c.train.validate_every = 0;
    c.train.ema = 0;
    if (!valid) c.data.valid = "";
    TrainRequest request{.config = c};
    request.events.stop_requested = [] { return true; };
    EXPECT_TRUE(train(request).stopped);
    const Translator translator = Translator::load(c.train.output);
    EXPECT_EQ(translator.translate({"1 2"}, {}).size(), 1u);
    const std::string newest = list_checkpoints(c.train.output + "/checkpoints").front();
    EXPECT_NEAR(loss_of_shipped(c.train.output), loss_of_saved(c.train.output, newest, "model."), 1e-6);
  }
}

TEST_F(ShippedModels, ARunStoppedAfterTheBestKeepsIt) {
  TrainConfig c = restless("run", 50);
  c.train.validate_every = 2;
  int64_t at = 0;
  TrainRequest request{.config = c};
  request.events.on_step = [&](const TrainStep& step) { at = step.step; };
  request.events.on_validation = [&](const TrainValidation& v) { validations_.push_back(v); };
  request.events.stop_requested = [&] { return at == 9; };
  train(request);
  double least = INFINITY;
  for (const TrainValidation& v : validations_) least = std::min(least, v.loss);
  EXPECT_NEAR(loss_of_shipped(c.train.output), least, 1e-6 * least);
}

TEST_F(ShippedModels, TheRunningMeanIsThatOfTheFormula) {
  TrainConfig c = config("run", 5);
  c.train.ema = 0.8;
  c.train.save_every = 1;
  c.train.keep = 1000;
  c.optimizer.learning_rate = 0.05;
  run(c);
  std::map<std::string, std::vector<double>> sums;
  double weight = 0;
  for (int64_t step = 1; step <= 5; ++step) {
    const Checkpoint saved =
        read_checkpoint(fmt::format("{}/checkpoints/step-{:08}.safetensors", c.train.output, step));
    const double part = 0.2 * std::pow(0.8, static_cast<double>(5 - step));
    weight += part;
    for (const auto& [name, tensor] : saved.tensors) {
      if (!name.starts_with("model.")) continue;
      std::vector<double>& sum = sums[name.substr(6)];
      sum.resize(static_cast<size_t>(tensor.count()));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part * tensor.data<float>()[i];
    }
    for (const auto& [name, tensor] : saved.tensors) {
      if (step > 1 || !name.starts_with("adam.mean.")) continue;  // the first mean is the first weights
      const Tensor weights = saved.tensors.at("model." + name.substr(10));
      for (int64_t i = 0; i < tensor.count(); ++i) ASSERT_EQ(tensor.data<float>()[i], weights.data<float>()[i]);
    }
  }
  const Checkpoint last = load_newest_checkpoint(c.train.output + "/checkpoints").value();
  for (const auto& [name, sum] : sums) {
    const Tensor mean = last.tensors.at("adam.mean." + name);
    for (size_t i = 0; i < sum.size(); ++i)
      ASSERT_NEAR(mean.data<float>()[i], sum[i] / weight, 1e-6 + 1e-6 * std::abs(sum[i])) << name;
  }
}

// One run in which the mean is better and one in which the weights are; each says which, and ships it.
TEST_F(ShippedModels, TheBetterOfMeanAndWeightsIsShipped) {
  for (const bool mean : {true, false}) {
    TrainConfig c = config(mean ? "mean" : "weights", 12);
    c.train.validate_every = 12;
    c.train.ema = mean ? 0.9 : 0.99;
    c.optimizer.schedule = ScheduleKind::constant;
    c.optimizer.learning_rate = mean ? 0.2 : 0.01;  // weights that jump about, or that all go one way
    validations_.clear();
    const TrainOutcome outcome = run(c);
    ASSERT_EQ(validations_.size(), 1u);
    const TrainValidation& v = validations_.front();
    const std::string newest = list_checkpoints(c.train.output + "/checkpoints").front();
    const double of_mean = loss_of_saved(c.train.output, newest, "adam.mean.");
    const double of_weights = loss_of_saved(c.train.output, newest, "model.");
    EXPECT_EQ(of_mean < of_weights, mean) << of_mean << " " << of_weights;
    EXPECT_EQ(v.mean, mean);
    EXPECT_EQ(outcome.mean_shipped, mean);
    EXPECT_NEAR(v.loss, std::min(of_mean, of_weights), 1e-5);
    ASSERT_TRUE(v.other_value.has_value());
    EXPECT_NEAR(*v.other_value, std::max(of_mean, of_weights), 1e-5);
    EXPECT_NEAR(loss_of_shipped(c.train.output), v.loss, 1e-5);
    EXPECT_GE(v.value("bleu"), 0);
  }
}

TEST_F(ShippedModels, WithoutValidationTheMeanIsShipped) {
  TrainConfig c = config("run", 6);
  c.data.valid = "";
  c.optimizer.learning_rate = 0.05;
  const TrainOutcome outcome = run(c);
  EXPECT_TRUE(outcome.mean_shipped);
  const std::string newest = list_checkpoints(outcome.folder + "/checkpoints").front();
  EXPECT_NEAR(loss_of_shipped(outcome.folder), loss_of_saved(outcome.folder, newest, "adam.mean."), 1e-6);
  EXPECT_GT(std::abs(loss_of_shipped(outcome.folder) - loss_of_saved(outcome.folder, newest, "model.")), 1e-4);
}

TEST_F(ShippedModels, ARunThatIsResumedAtItsEndJudgesNothingTwice) {
  const TrainConfig c = config("run", 6);
  run(c);
  const std::string before = text_of(c.train.output + "/metrics.jsonl");
  validations_.clear();
  EXPECT_EQ(run(c, true).steps, 6);
  EXPECT_TRUE(validations_.empty());
  EXPECT_EQ(text_of(c.train.output + "/metrics.jsonl"), before);
}

}  // namespace
}  // namespace mh
