// Every pretrained family that writes, beside transformers' generate(), token for token.
#include "multihead/generate/models/pretrained_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "multihead/generate/generation_config.h"
#include "multihead/generate/search.h"
#include "tests/harness/refusal.h"
#include "tests/models/golden_folder.h"

namespace mh {
namespace {

using test::GoldenFolder;

std::vector<std::string> writing_folders() {
  std::vector<std::string> out;
  const std::string folders = std::string(MH_TEST_DATA) + "/models/golden/families/";
  for (const std::string& name : GoldenFolder::names())
    if (std::filesystem::exists(folders + name + "/generation.json")) out.push_back(name);
  return out;
}

TEST(PretrainedGenerator, WritesWhatTransformersWrites) {
  ASSERT_GE(writing_folders().size(), 12U);
  for (const std::string& name : writing_folders()) {
    const std::string folder = GoldenFolder(name).path;
    const Pretrained model = Pretrained::load(folder);
    const PretrainedGenerator generator(model);
    std::ifstream in(folder + "/generation.json");
    const auto golden = nlohmann::json::parse(in);
    const auto prompts = golden["prompts"].get<Prompts>();
    for (const auto& wanted : golden["cases"]) {
      const GenerationConfig config = read_generation_config(wanted["options"].dump(), name);
      const auto found = search(generator, prompts, config.search);
      for (size_t n = 0; n < prompts.size(); ++n) {
        auto ids = wanted["written"][n].get<std::vector<int32_t>>();
        const std::vector<int32_t>& ends = config.search.rules.ends;
        ids.erase(std::find_first_of(ids.begin(), ids.end(), ends.begin(), ends.end()), ids.end());
        EXPECT_EQ(found[n][0].ids, ids) << name << " " << wanted["options"] << " prompt " << n;
      }
    }
  }
}

TEST(PretrainedGenerator, StepsGiveTheLogitsOfTheWholePass) {
  for (const std::string& name : writing_folders()) {
    const GoldenFolder folder(name);
    const Pretrained model = Pretrained::load(folder.path);
    const PretrainedGenerator generator(model);
    const bool translates = model.architecture().cross_attention;
    const std::vector<int32_t> text{5, 9, 3, 7}, source{6, 4, 8};
    ModelInputs inputs;
    inputs.tokens = token_batch({translates ? source : text});
    if (translates) inputs.decoder = token_batch({text});
    const Tensor whole = model.forward(inputs)["logits"];
    Pass pass = Pass::inference();
    const Prompts prompts{translates ? source : std::vector<int32_t>{5}};
    const auto state = generator.begin(prompts, generator.room({1}, 1, 4), pass);
    for (int64_t t = 0; t < 4; ++t) {
      const Tensor logits = generator.logits(generator.step(*state, {text[static_cast<size_t>(t)]}, pass));
      EXPECT_LT(test::error_of(logits, whole.slice(0, t, t + 1)), 1e-5) << name << " " << t;
    }
  }
}

TEST(PretrainedGenerator, RefusesModelsThatWriteNothing) {
  const Pretrained model = Pretrained::load(GoldenFolder("bert_sequence").path);
  EXPECT_TRUE(refusal_of([&] { PretrainedGenerator{model}; }).says("a head for text classifier writes no text"));
}

}  // namespace
}  // namespace mh
