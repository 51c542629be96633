// Which verb a folder is for, found from its config and tensors.
#include "multihead/models/pretrained/folder_facts.h"

#include "tests/harness/refusal.h"
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
           {"bart_sequence", "classify", "bart text classifier"},
           {"mbart_question", "answer", "mbart question answerer"},
           {"vit_image", "", "vit image classifier"},
           {"bert_choice", "", "bert chooser among several texts"},
           {"clip_both", "", "clip text and image comparer"}}) {
    const FolderFacts facts = folder_facts(GoldenFolder(name).path);
    EXPECT_EQ(facts.verb(), verb) << name;
    EXPECT_EQ(facts.description(), description) << name;
    EXPECT_EQ(facts.advice(), *verb == 0 ? "no verb runs it, mh::Pretrained and forward() in Python do"
                                         : "use `multihead " + std::string(verb) + "`");
  }
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
