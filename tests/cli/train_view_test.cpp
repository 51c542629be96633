// Numbers of a training run as people read them.
#include "cli/verbs/train_view.h"

#include <gtest/gtest.h>

#include "multihead/base/parallel.h"

namespace mh::cli {
namespace {

TEST(TrainView, AStepTellsLossRateAndTimeLeft) {
  EXPECT_EQ(step_text({.loss = 2.3456, .tokens_per_second = 12345.6, .seconds_left = 3723}),
            "loss 2.346  12,345 tokens/s  1:02:03 left");
}

TEST(TrainView, AValidationTellsWhatWasMeasured) {
  EXPECT_EQ(validation_text(
                {.step = 1000, .loss = 2, .metrics = {{"loss", 2}, {"perplexity", 7.389}, {"bleu", -1}, {"chrf", -1}}}),
            "step 1,000: validation loss 2.0000, perplexity 7.39");
  EXPECT_EQ(validation_text({.step = 2,
                             .loss = 1,
                             .metrics = {{"loss", 1}, {"perplexity", 2.718}, {"bleu", 31.26}, {"chrf", 50}},
                             .best = true}),
            "step 2: validation loss 1.0000, perplexity 2.72, BLEU 31.3, chrF 50.0, the best so far");
  EXPECT_EQ(validation_text({.step = 2,
                             .loss = 1,
                             .metrics = {{"loss", 1}, {"perplexity", 2.718}, {"bleu", -1}},
                             .mean = true,
                             .other_value = 1.5}),
            "step 2: validation loss 1.0000, perplexity 2.72; of the running mean (the weights have 1.5000)");
  EXPECT_EQ(
      validation_text(
          {.step = 2, .loss = 1, .metrics = {{"loss", 1}, {"perplexity", 2.718}, {"bleu", -1}}, .other_value = 1.5}),
      "step 2: validation loss 1.0000, perplexity 2.72; of the weights (the running mean has 1.5000)");
}

TEST(TrainView, TheSummaryTellsWhatIsAboutToHappen) {
  TrainConfig config;
  config.data.train = "pairs.tsv";
  config.train.output = "models/x";
  TrainStart start{.parameters = 7577088,
                   .data = {.train = 166663, .tokens = 1697829, .source_tokens = 1603490, .vocabulary = 8000},
                   .steps = 8332};
  const std::string text = train_summary(config, start);
  for (const char* part :
       {"7,577,088 parameters", "width 256", "3 + 3 layers", "f32", "8,000 tokens", "166,663 pairs", "1,603,490 source",
        "1,697,829 target", "pairs.tsv", "validation  none", "8,332, 20 epochs\n", "models/x/"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  start.first_step = 1000;
  start.data.valid = 1240;
  config.data.valid = "valid.tsv";
  config.train.steps = 8332;
  const std::string resumed = train_summary(config, start);
  EXPECT_NE(resumed.find("8,332; 1,000 are done\n"), std::string::npos) << resumed;
  EXPECT_NE(resumed.find("1,240 pairs: valid.tsv\n"), std::string::npos) << resumed;
}

}  // namespace
}  // namespace mh::cli
