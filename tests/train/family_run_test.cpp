// Classifiers and taggers of Hugging Face's families: trained, written, read again, and started from.
#include <gtest/gtest.h>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tasks/verbs/tagger.h"
#include "tests/train/observed_run.h"

namespace mh {
namespace {

class FamilyRuns : public testing::Test {
 protected:
  FamilyRuns() {
    std::string texts, tags;
    for (int n = 0; n < 40; ++n) {
      texts += fmt::format("{} film number {}\t{}\n", n % 2 == 0 ? "good" : "bad", n, n % 2 == 0 ? "yes" : "no");
      tags += n % 2 == 0 ? "Ada B-PER\nsings O\n\n" : "in O\nRome B-LOC\n\n";
    }
    put_text(folder_ / "texts.tsv", texts);
    put_text(folder_ / "tags.conll", tags);
  }
  TrainConfig config(TaskKind task, ModelKind kind, const std::string& output) const {
    TrainConfig c;
    c.task.kind = task;
    c.recurrent.kind = kind;
    c.model = {.vocabulary = 0,
               .width = 16,
               .heads = 2,
               .feed_forward = 24,
               .encoder_layers = 2,
               .middle = Middle::gelu,
               .max_length = 16};
    c.tokenizer = {.kind = TokenizerKind::words, .min_count = 1, .lowercase = true};
    c.data.train = c.data.valid = folder_ / (task == TaskKind::classify ? "texts.tsv" : "tags.conll");
    c.data.max_length = 16;
    c.data.examples_per_batch = 8;
    c.optimizer.learning_rate = 5e-3;
    c.optimizer.warmup = 5;
    c.train.output = folder_ / output;
    c.train.steps = 40;
    c.train.threads = 1;
    return c;
  }
  TemporaryFolder folder_;
};

TEST_F(FamilyRuns, ClassifiersAreFoldersThatLoad) {
  for (const ModelKind each : {ModelKind::bert, ModelKind::distilbert, ModelKind::modernbert}) {
    const std::string kind = RecurrentChoice{.kind = each}.family();
    const Seen seen = observe(config(TaskKind::classify, each, kind));
    ASSERT_EQ(seen.refusal, "no refusal") << kind;
    EXPECT_GT(seen.outcome.best_validation, 0.9) << kind;
    EXPECT_TRUE(seen.start.data.model.starts_with(kind)) << seen.start.data.model;
    const std::string folder = folder_ / kind;
    EXPECT_EQ(model_kind_of_folder(folder), "classify");
    const Pretrained loaded = Pretrained::load(folder);
    EXPECT_EQ(loaded.architecture().labels, (std::vector<std::string>{"no", "yes"}));
    EXPECT_TRUE(loaded.unused().empty());
    const Classifier classifier = Classifier::load(folder);
    EXPECT_EQ(classifier("good film").label, "yes") << kind;
    // The folder's tokenizer puts [CLS] and [SEP] around a text, and the classifier reads them.
    EXPECT_EQ(seen.tokenizer().encode_input("good film").ids.size(), 4U);
    EXPECT_TRUE(text_of(folder + "/tokenizer_config.json").find("PreTrainedTokenizerFast") != std::string::npos);
  }
}

TEST_F(FamilyRuns, ARunStartsFromAFolderAndResumes) {
  observe(config(TaskKind::classify, ModelKind::bert, "first"));
  TrainConfig c = config(TaskKind::classify, ModelKind::transformer, "second");
  c.start.from = folder_ / "first";
  c.train.steps = 6;
  c.train.save_every = 3;
  TrainRequest request{.config = c};
  int64_t steps = 0;
  request.events.on_step = [&](const TrainStep&) { ++steps; };
  request.events.stop_requested = [&] { return steps == 3; };
  train(request);
  std::filesystem::remove_all(folder_ / "first");
  train({.config = c, .resume = true});
  EXPECT_EQ(Classifier::load(folder_ / "second")("good film").label, "yes");
}

TEST_F(FamilyRuns, OtherLabelsGetAFreshHead) {
  observe(config(TaskKind::classify, ModelKind::distilbert, "first"));
  put_text(folder_ / "texts.tsv", text_of(folder_ / "texts.tsv") + "neither film\tmaybe\n");
  TrainConfig c = config(TaskKind::classify, ModelKind::transformer, "second");
  c.start.from = folder_ / "first";
  std::vector<std::string> messages;
  TrainRequest request{.config = c};
  request.events.on_message = [&](const std::string& text) { messages.push_back(text); };
  train(request);
  ASSERT_FALSE(messages.empty());
  EXPECT_NE(messages[0].find("tensors are fresh, the first is head."), std::string::npos) << messages[0];
  EXPECT_EQ(Classifier::load(folder_ / "second").labels(), (std::vector<std::string>{"maybe", "no", "yes"}));
}

TEST_F(FamilyRuns, TaggersAreFoldersToo) {
  for (const ModelKind each : {ModelKind::bert, ModelKind::modernbert}) {
    const std::string kind = RecurrentChoice{.kind = each}.family();
    const Seen seen = observe(config(TaskKind::tag, each, "tag-" + kind));
    ASSERT_EQ(seen.refusal, "no refusal") << kind;
    EXPECT_GT(seen.outcome.best_validation, 0.9) << kind;
    EXPECT_EQ(model_kind_of_folder(seen.outcome.folder), "tag");
    const Tagging said = Tagger::load(seen.outcome.folder)("Ada sings in Rome");
    EXPECT_EQ(said.tags.size(), 4U);
    EXPECT_EQ(said.tags[0], "B-PER") << kind;
  }
}

TEST_F(FamilyRuns, OtherTasksHaveNoFamilies) {
  TrainConfig c = config(TaskKind::translation, ModelKind::bert, "x");
  EXPECT_EQ(refusal_of([&] { train({.config = c}); }).sentence,
            "config: model.kind is \"bert\", and task.kind \"translation\"; expected \"transformer\"");
}

}  // namespace
}  // namespace mh
