// `multihead inspect`: what it says of weights, checkpoints and tokenizers, and of what is none of them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/io/checkpoint.h"
#include "multihead/io/safetensors.h"
#include "multihead/text/tokenizer.h"
#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

using Json = nlohmann::json;
using Inspect = Program;

Json json_of(const std::string& path) { return Json::parse(run("inspect --json " + in_quotes(path)).out); }

TEST_F(Inspect, ListsTheTensorsOfAFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_safetensors(path,
                    {.tensors = {{"a.weight", tensor<float>({1, 2, 3, NAN}, {2, 2})}, {"b", full({3}, 7, DType::i64)}},
                     .metadata = {{"config", "{}"}}});
  const Ran text = run("inspect " + in_quotes(path));
  EXPECT_EQ(text.code, 0);
  for (const char* part : {": safetensors", "config: {}", "a.weight  f32   [2, 2]", "1 NaN", "b         i64   [3]",
                           "total  2 tensors, 7 parameters, 40 bytes, 1 NaN"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;

  const Json json = json_of(path);
  EXPECT_EQ(json.at("kind"), "safetensors");
  EXPECT_EQ(json.at("metadata"), Json({{"config", "{}"}}));
  const Json& a = json.at("tensors").at(0);
  EXPECT_EQ(a.at("name"), "a.weight");
  EXPECT_EQ(a.at("dtype"), "f32");
  EXPECT_EQ(a.at("shape"), Json({2, 2}));
  EXPECT_EQ(a.at("min"), 1);
  EXPECT_EQ(a.at("max"), 3);
  EXPECT_EQ(a.at("mean"), 2);
  EXPECT_EQ(a.at("nan"), 1);
  EXPECT_EQ(json.at("total"), Json({{"tensors", 2}, {"parameters", 7}, {"bytes", 40}, {"nan", 1}, {"infinite", 0}}));
}

TEST_F(Inspect, SaysWhatACheckpointHolds) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_checkpoint(
      path,
      {.step = 1200, .tensors = {{"model.w", full({5}, 1)}, {"adam.w", full({5}, 1)}}, .state = R"({"epoch": 3})"});
  const Ran text = run("inspect " + in_quotes(path));
  EXPECT_EQ(text.code, 0);
  for (const char* part :
       {"checkpoint of step 1200, whole", R"(state: {"epoch": 3})", "10 parameters (5 of the model)"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  const Json json = json_of(path);
  EXPECT_EQ(json.at("kind"), "checkpoint");
  EXPECT_EQ(json.at("step"), 1200);
  EXPECT_EQ(json.at("state").at("epoch"), 3);
  EXPECT_EQ(json.at("total").at("model_parameters"), 5);

  std::string altered = text_of(path);
  altered.back() = static_cast<char>(altered.back() ^ 1);
  put_text(path, altered);
  const Ran refused = run("inspect " + in_quotes(path), true);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.out.find("the file is damaged"), std::string::npos) << refused.out;
}

TEST_F(Inspect, SaysWhatATokenizerHolds) {
  const TemporaryFolder folder;
  const std::string path = folder / "tokenizer.json";
  train_bpe({"a b", "a b"}, {.vocabulary = 262}).save(path);
  const Ran text = run("inspect " + in_quotes(path));
  EXPECT_EQ(text.code, 0);
  for (const char* part : {": tokenizer", "</s>: 2", "4 of them special"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  const Json json = json_of(path);
  EXPECT_EQ(json.at("kind"), "tokenizer");
  EXPECT_EQ(json.at("tokens"), Tokenizer::load(path).size());
  EXPECT_EQ(json.at("special").at("<pad>"), 0);
}

TEST_F(Inspect, OfAFolderTheModelInIt) {
  const TemporaryFolder folder;
  write_safetensors(folder / "model.safetensors", {.tensors = {{"w", full({1234}, 1)}}, .metadata = {}});
  const Ran text = run("inspect " + in_quotes(folder.path()));
  EXPECT_NE(text.out.find("total  1 tensors, 1,234 parameters"), std::string::npos) << text.out;
}

TEST_F(Inspect, AHostileNameMovesNoCursor) {
  const TemporaryFolder folder;
  write_safetensors(folder / "file", {.tensors = {{"\x1b[2J\n", full({1}, 1)}}, .metadata = {{"\x1b", "\x1b"}}});
  const Ran text = run("inspect " + in_quotes(folder / "file"));
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
  EXPECT_NE(text.out.find("\\x1b[2J\\x0a"), std::string::npos) << text.out;
}

TEST_F(Inspect, RefusesOtherFilesInOneSentence) {
  const TemporaryFolder folder;
  put_text(folder / "text", "no such thing");
  put_text(folder / "json", " {\"a\": 1}");
  put_text(folder / "empty", "");
  for (const std::string& path :
       {folder / "text", folder / "json", folder / "empty", folder / "missing", folder.path()}) {
    const Ran ran = run("inspect " + in_quotes(path), true);
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_NE(ran.out.find(path), std::string::npos) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
  }
  EXPECT_EQ(run("inspect").code, 2);
}

}  // namespace
}  // namespace mh::cli
