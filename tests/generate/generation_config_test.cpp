// generation_config.json: what transformers writes with it, token for token, and what it may not hold.
#include "multihead/generate/generation_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "multihead/generate/search.h"
#include "tests/generate/table_model.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

// What transformers gave: without the end and what fills up behind it.
struct Given {
  std::vector<int32_t> ids;
  bool ended = false;
};

Given given(const std::vector<int32_t>& written, const std::vector<int32_t>& ends) {
  const auto end = std::find_first_of(written.begin(), written.end(), ends.begin(), ends.end());
  return {{written.begin(), end}, end != written.end()};
}

TEST(GenerationConfig, WritesWhatTransformersWrites) {
  std::ifstream in(MH_TEST_DATA "/generate/golden/writing.json");
  const auto golden = nlohmann::json::parse(in);
  const auto prompts = golden["prompts"].get<Prompts>();
  ASSERT_GT(golden["cases"].size(), 150U);
  for (const auto& wanted : golden["cases"]) {
    const GenerationConfig config = read_generation_config(wanted["options"].dump(), "golden");
    EXPECT_FALSE(config.sample);
    const auto found = search(test::TableModel(), prompts, config.search);
    for (size_t n = 0; n < prompts.size(); ++n) {
      const auto& all = wanted["written"][n];
      ASSERT_EQ(found[n].size(), all.size());
      for (size_t rank = 0; rank < all.size(); ++rank) {
        const Given best = given(all[rank].get<std::vector<int32_t>>(), config.search.rules.ends);
        EXPECT_EQ(found[n][rank].ids, best.ids) << wanted["options"] << " prompt " << n << " rank " << rank;
        EXPECT_EQ(found[n][rank].ended, best.ended) << wanted["options"] << " prompt " << n;
      }
    }
  }
}

TEST(GenerationConfig, KeysOfTheCallerStandInPlaceOfTheFoldersAlone) {
  const GenerationConfig folder = read_generation_config(
      R"({"max_new_tokens":7,"min_new_tokens":3,"num_beams":4,"early_stopping":true,"top_k":9,"eos_token_id":[2,5]})",
      "f");
  const auto with = [&](const char* keys) { return with_generation_keys(folder, keys, "keys"); };
  EXPECT_EQ(with("{}").search.rules.max_length, 7);
  EXPECT_EQ(with("{}").search.beam, 4);
  EXPECT_EQ(with("{}").search.stop, Stop::full);
  const GenerationConfig text = with(R"({"max_length":30,"eos_token_id":[]})");
  EXPECT_EQ(text.search.rules.max_length, 0);
  EXPECT_EQ(text.search.rules.max_text, 30);
  EXPECT_EQ(text.sampling.rules.min_length, 3);
  EXPECT_TRUE(text.search.rules.ends.empty());
  EXPECT_EQ(with_generation_keys(text, R"({"max_new_tokens":5})", "keys").search.rules.max_text, 0);
  EXPECT_EQ(with(R"({"max_new_tokens":2})").search.rules.min_length, 2);
  const GenerationConfig drawn = with(R"({"do_sample":true,"num_return_sequences":2,"temperature":0.5})");
  EXPECT_TRUE(drawn.sample);
  EXPECT_EQ(drawn.sampling.samples, 2);
  EXPECT_EQ(drawn.sampling.temperature, 0.5F);
  EXPECT_EQ(drawn.sampling.top_k, 9);
  EXPECT_EQ(drawn.sampling.rules.ends, (std::vector<int32_t>{2, 5}));
  // What our own models want is not what a file without keys says.
  const GenerationConfig ours{.sample = true, .search = {.beam = 1}};
  EXPECT_EQ(with_generation_keys(ours, "{}", "keys").search.rules.max_length, 0);
  EXPECT_EQ(with_generation_keys(ours, "{}", "keys").sampling.top_k, 0);
}

TEST(GenerationConfig, WithoutKeysTwentyTokensAreWrittenGreedily) {
  const GenerationConfig config = read_generation_config("{}", "f");
  EXPECT_FALSE(config.sample);
  EXPECT_EQ(config.search.beam, 1);
  EXPECT_EQ(config.search.rules.max_length, 20);
  EXPECT_EQ(config.search.rules.max_text, 0);
  EXPECT_EQ(config.sampling.top_k, 50);
  EXPECT_EQ(config.decoder_start, -1);
  EXPECT_TRUE(config.unread.empty());
  EXPECT_EQ(search(test::TableModel(), {{1}}, config.search)[0][0].ids.size(), 20U);
}

TEST(GenerationConfig, ReadsHowToSample) {
  const GenerationConfig config = read_generation_config(
      R"({"do_sample": true, "temperature": 0.5, "top_k": 0, "top_p": 0.9, "min_p": 0.125, "max_length": 30,
          "eos_token_id": [3, 4], "bos_token_id": 1, "decoder_start_token_id": 7})",
      "f");
  EXPECT_TRUE(config.sample);
  EXPECT_EQ(config.sampling.temperature, 0.5F);
  EXPECT_EQ(config.sampling.top_k, 0);
  EXPECT_EQ(config.sampling.top_p, 0.9);
  EXPECT_EQ(config.sampling.min_p, 0.125);
  EXPECT_EQ(config.sampling.rules.max_text, 30);
  EXPECT_EQ(config.sampling.rules.max_length, 0);
  EXPECT_EQ(config.sampling.rules.ends, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(config.decoder_start, 7);
}

TEST(GenerationConfig, SaysWhatHasNoEffectHere) {
  const GenerationConfig config = read_generation_config(
      R"({"num_beam_groups": 2, "diversity_penalty": 0.0, "typical_p": 1.0, "guidance_scale": null, "max_time": 3.5,
          "do_sample": true, "num_beams": 4})",
      "f.json");
  EXPECT_EQ(config.unread, (std::vector<std::string>{"f.json: num_beam_groups has no effect here",
                                                     "f.json: max_time has no effect here",
                                                     "f.json: num_beams has no effect where do_sample is true"}));
}

TEST(GenerationConfig, RefusesWhatIsNoConfig) {
  const std::pair<const char*, const char*> broken[] = {
      {"[]", "f: is not a JSON object"},
      {"{", "f: is not a JSON object"},
      {R"({"num_beams": 0})", "f: num_beams is '0'; expected whole numbers from 1 to"},
      {R"({"num_beams": 1e99})", "f: num_beams is '1e+99'; expected whole numbers"},
      {R"({"max_length": 99999999999999999999})", "f: max_length is"},
      {R"({"max_length": -9223372036854775808})", "expected whole numbers from 1 to"},
      {R"({"temperature": "hot"})", "temperature is"},
      {R"({"do_sample": 1})", "f: do_sample is '1'; expected true or false"},
      {R"({"eos_token_id": [1, [2]]})", "f: eos_token_id is '[1,[2]]'; expected whole numbers"},
      {R"({"bad_words_ids": [3]})", "f: bad_words_ids is '[3]'; expected a list of ids"},
      {R"({"early_stopping": "soon"})", "expected true, false or \"never\""},
  };
  for (const auto& [json, words] : broken) {
    const auto refusal = refusal_of([&] { read_generation_config(json, "f"); });
    EXPECT_EQ(refusal.kind, ErrorKind::io) << json;
    EXPECT_TRUE(refusal.says(words)) << json << ": " << refusal.sentence;
  }
}

TEST(GenerationConfig, AnOlderFolderHasItsKeysInTheConfig) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_generation_config(folder / "none").search.beam, 1);
  put_text(folder / "config.json", R"({"model_type": "bart", "num_beams": 4, "vocab_size": 20})");
  EXPECT_EQ(load_generation_config(folder / ".").search.beam, 4);
  put_text(folder / "generation_config.json", R"({"num_beams": 5})");
  EXPECT_EQ(load_generation_config(folder / ".").search.beam, 5);
}

}  // namespace
}  // namespace mh
