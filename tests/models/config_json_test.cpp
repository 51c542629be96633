// A config goes through JSON unchanged; what is no config is refused by name.
#include "multihead/models/config_json.h"

#include <gtest/gtest.h>

#include "tests/harness/refusal.h"

namespace mh {
namespace {

TEST(ConfigJson, ComesBackAsItWas) {
  const TransformerConfig config{.vocabulary = 321,
                                 .width = 48,
                                 .heads = 6,
                                 .feed_forward = 77,
                                 .encoder_layers = 2,
                                 .decoder_layers = 5,
                                 .norm = NormPlace::after,
                                 .middle = Middle::geglu,
                                 .positions = ModelPositions::rotary,
                                 .dropout = 0.3F,
                                 .tied = false,
                                 .max_length = 99,
                                 .pad = 7,
                                 .begin = 8,
                                 .end = 9};
  const std::string json = config_to_json(config);
  const TransformerConfig back = config_from_json(json, "file");
  EXPECT_EQ(config_to_json(back), json);
  EXPECT_EQ(back.feed_forward, 77);
  EXPECT_EQ(back.dropout, 0.3F);
  EXPECT_EQ(back.end, 9);
  EXPECT_NE(json.find("\"dropout\":0.3,"), std::string::npos) << json;
}

TEST(ConfigJson, MissingKeysAreDefaults) {
  EXPECT_EQ(config_to_json(config_from_json("{}", "file")), config_to_json({}));
}

TEST(ConfigJson, RefusesWhatIsNoConfig) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "no JSON object"},
      {"[1]", "no JSON object"},
      {"{\"width\": 16", "no JSON object"},
      {"{\"wide\": 16}", "'wide'"},
      {"{\"width\": 0}", "'width' is 0"},
      {"{\"width\": \"16\"}", "'width' is \"16\""},
      {"{\"max_length\": 1099511627776}", "'max_length'"},
      {"{\"kind\": \"mamba\"}", "'kind' is \"mamba\""},
      {"{\"norm\": \"none\"}", "\"pre\" or \"post\""},
      {"{\"positions\": 3}", "'positions' is 3"},
      {"{\"tied\": 1}", "'tied' is 1"},
      {"{\"dropout\": 1}", "'dropout' is 1"},
      {"{\"vocabulary\": 10, \"end\": 10}", "'end' is 10"},
      {"{\"begin\": -1}", "'begin' is -1"},
  };
  for (const auto& [json, part] : wrong) {
    const Refusal refusal = refusal_of([&] { config_from_json(json, "a.safetensors"); });
    EXPECT_EQ(refusal.kind, ErrorKind::io) << json;
    EXPECT_TRUE(refusal.says(part)) << refusal.sentence;
    EXPECT_TRUE(refusal.says("a.safetensors: ")) << refusal.sentence;
  }
}

}  // namespace
}  // namespace mh
