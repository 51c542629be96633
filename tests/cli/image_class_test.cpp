// `multihead classify` and `eval` of a model that reads pictures: what comes out for every file.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "multihead/tasks/verbs/image_classifier.h"
#include "multihead/train/trainer.h"
#include "tests/cli/run_program.h"
#include "tests/tasks/pixels/pictures.h"

namespace mh::cli {
namespace {

class PictureVerbs : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    write_pictures(folder_ / "pictures", 10);
    TrainConfig c;
    c.task.kind = TaskKind::image_class;
    c.model = {.vocabulary = 0, .width = 16, .heads = 2, .feed_forward = 24, .encoder_layers = 1, .dropout = 0};
    c.data.train = c.data.valid = folder_ / "pictures";
    c.data.examples_per_batch = 10;
    c.optimizer.learning_rate = 1e-2;
    c.optimizer.warmup = 0;
    c.train.output = folder_ / "model";
    c.train.steps = 40;
    c.train.threads = 1;
    train({.config = c});
  }
  std::string verb(const std::string& name) const { return name + " " + in_quotes(folder_ / "model") + " "; }
  TemporaryFolder folder_;
};

TEST_F(PictureVerbs, AFileGetsItsLabel) {
  const std::string upper = folder_ / "pictures/upper/1.png", lower = folder_ / "pictures/lower/2.png";
  const ImageClassifier classifier = ImageClassifier::load(folder_ / "model");
  const auto shown = [&](const std::string& file) {
    const Classification one = classifier(read_image(file));
    return fmt::format("{}\t{:.4f}\n", one.label, one.score);
  };
  EXPECT_TRUE(shown(upper).starts_with("upper\t"));
  EXPECT_EQ(run(verb("classify") + in_quotes(upper) + " " + in_quotes(lower)).out, shown(upper) + shown(lower));
  put_text(folder_ / "in.txt", lower + "\n" + upper + "\n");
  EXPECT_EQ(run(verb("classify") + "< " + in_quotes(folder_ / "in.txt")).out, shown(lower) + shown(upper));
  const auto json = nlohmann::json::parse(run(verb("classify") + in_quotes(lower) + " --json --all").out);
  EXPECT_EQ(json.at("label"), "lower");
  EXPECT_NEAR(json.at("scores").at("lower").get<double>() + json.at("scores").at("upper").get<double>(), 1, 1e-5);
}

TEST_F(PictureVerbs, AFileThatCannotBeReadGetsAnEmptyLine) {
  put_text(folder_ / "broken.png", "\x89PNG\r\n\x1A\nno more");
  const std::string upper = folder_ / "pictures/upper/1.png";
  const Ran ran = run(verb("classify") + in_quotes(folder_ / "broken.png") + " " + in_quotes(upper), true);
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("broken.png': the picture is damaged"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\n\nupper\t"), std::string::npos) << ran.out;
}

TEST_F(PictureVerbs, EvalTellsTheMetrics) {
  const std::string of = verb("eval") + in_quotes(folder_ / "pictures");
  EXPECT_TRUE(run(of).out.starts_with("accuracy 1.0000\nmacro_f1 1.0000\nmatthews 1.0000\nloss ")) << run(of).out;
  EXPECT_NE(run(of + " --confusion").out.find("right \\ said\tlower\tupper\nlower\t10\t0\nupper\t0\t10\n"),
            std::string::npos);
  const auto json = nlohmann::json::parse(run(of + " --json --confusion").out);
  EXPECT_EQ(json.at("examples"), 20);
  EXPECT_EQ(json.at("confusion")[1][1], 10);
}

}  // namespace
}  // namespace mh::cli
