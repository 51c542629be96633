// Which verb a folder is for, found from its config and tensors.
#include "multihead/models/pretrained/folder_facts.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"
#include "tests/models/golden_folder.h"
#include "tests/models/golden_write.h"

namespace mh {
namespace {

using test::GoldenFolder;

TEST(FolderFacts, EveryHeadHasItsVerb) {
  for (const auto& [name, verb, description] : std::vector<std::tuple<const char*, const char*, const char*>>{
           {"bert_body", "embed", "bert body"},
           {"bert_masked", "fill", "bert masked language model"},
           {"xlm_roberta_sequence", "classify", "xlm-roberta text classifier"},
           {"modernbert_token", "tag", "modernbert token classifier"},
           {"deberta_question", "answer", "deberta-v2 question answerer"},
           {"vit_image", "classify", "vit image classifier"},
           {"bart_sequence", "classify", "bart text classifier"},
           {"mbart_question", "answer", "mbart question answerer"},
           {"bert_choice", "", "bert chooser among several texts"},
           {"clip_both", "", "clip text and image comparer"},
           {"gpt2_lm", "generate", "gpt2 language model"},
           {"marian_lm", "translate", "marian text-to-text model"},
           {"m2m_100_lm", "translate", "m2m_100 text-to-text model"},
           {"mbart_lm", "translate", "mbart text-to-text model"},
           {"pegasus_lm", "summarise", "pegasus text-to-text model"},
           {"bart_lm", "generate", "bart text-to-text model"},
           {"t5_lm", "generate", "t5 text-to-text model"}}) {
    const FolderFacts facts = folder_facts(GoldenFolder(name).path);
    EXPECT_EQ(facts.verb(), verb) << name;
    EXPECT_EQ(facts.description(), description) << name;
    EXPECT_EQ(facts.advice(), *verb == 0 ? "no verb runs it, mh::Pretrained and forward() in Python do"
                                         : "use `multihead " + std::string(verb) + "`");
  }
}

TEST(FolderFacts, TheTasksOfAConfigTellWhatATextToTextModelIsFor) {
  const TemporaryFolder at;
  const auto verb_of = [&](const std::string& name, const nlohmann::json& tasks) {
    const std::string folder = GoldenFolder(name).path;
    std::ifstream in(folder + "/config.json");
    auto config = nlohmann::json::parse(in);
    config["task_specific_params"] = tasks;
    put_text(at / "config.json", config.dump());
    std::filesystem::copy_file(folder + "/model.safetensors", at / "model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    return std::string(folder_facts(at.path()).verb());
  };
  const nlohmann::json none = nlohmann::json::object(), summary{{"summarization", none}};
  const nlohmann::json both{{"summarization", none}, {"translation_en_to_de", none}};
  EXPECT_EQ(verb_of("bart_lm", summary), "summarise");
  EXPECT_EQ(verb_of("pegasus_lm", {{"translation", none}}), "translate");
  EXPECT_EQ(verb_of("t5_lm", both), "generate");
  EXPECT_EQ(verb_of("t5_lm", summary), "generate");
  EXPECT_EQ(verb_of("marian_lm", both), "translate");
  EXPECT_EQ(verb_of("bart_lm", 3), "generate");
}

TEST(FolderFacts, OurOwnFoldersAreToldByTheKindInTheirMetadata) {
  const TemporaryFolder at;
  const auto facts = [&](const std::string& config) {
    test::put_weights(at / "model.safetensors", {.tensors = {}, .metadata = {{"config", config}}});
    return folder_facts(at.path());
  };
  EXPECT_EQ(facts("{\"vocabulary\": 9}").verb(), "translate");
  EXPECT_EQ(facts("{\"kind\": \"lstm\"}").verb(), "translate");
  EXPECT_EQ(facts("{\"kind\": \"language_model\"}").verb(), "generate");
  EXPECT_TRUE(refusal_of([&] { facts("{\"kind\": \"oracle\"}"); }).says("its kind is 'oracle'; expected one of"));
  EXPECT_TRUE(refusal_of([&] { folder_facts(at / "nowhere"); }).says("is not there"));
  test::put_weights(at / "model.safetensors", {});
  EXPECT_TRUE(refusal_of([&] { folder_facts(at.path()); }).says("has no config in its metadata"));
}

}  // namespace
}  // namespace mh
