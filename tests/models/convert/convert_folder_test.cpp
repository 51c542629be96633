// Old folders made new: tensors with their bits, a tokenizer, a family; and what is refused before anything is written.
#include "multihead/models/convert/convert_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/io/safetensors.h"
#include "multihead/io/torch/torch_file.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/text/tokenizer.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"
#include "tests/models/encoder_folder.h"

namespace mh {
namespace {

const std::string kState = MH_TEST_DATA "/io/golden/state.";

bool equal_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(x.view().data, y.view().data, static_cast<size_t>(x.count() * size_of(x.dtype()))) == 0;
}

class ConvertFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(old_); }
  void put_old(const std::string& name, const std::string& text) const { put_text(old_ + "/" + name, text); }
  void put_state(const std::string& form, const std::string& name = "pytorch_model.bin") const {
    std::filesystem::copy_file(kState + form + ".bin", old_ + "/" + name);
  }
  ConvertedFolder convert(const ConvertOptions& options = {}) const { return convert_folder(old_, new_, options); }
  Refusal refused(const ConvertOptions& options = {}) const {
    const Refusal refusal = refusal_of([&] { convert(options); });
    EXPECT_FALSE(std::filesystem::exists(new_)) << refusal.sentence;
    return refusal;
  }
  static bool says(const ConvertedFolder& made, const std::string& part) {
    return std::any_of(made.notes.begin(), made.notes.end(), [&](const auto& n) { return n.find(part) != n.npos; });
  }

  TemporaryFolder folder_;
  const std::string old_ = folder_ / "old", new_ = folder_ / "new";
};

TEST_F(ConvertFolder, BothFormsOfAPickleKeepEveryBitAndEveryOtherFile) {
  for (const std::string form : {"zip", "stream"}) {
    std::filesystem::remove_all(old_);
    std::filesystem::remove_all(new_);
    std::filesystem::create_directories(old_ + "/1_Pooling");
    put_state(form);
    put_old("config.json", "{\"model_type\": \"bert\", \"mine\": 1e-12}");
    put_old("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncat\n");
    put_old("1_Pooling/config.json", "{}");
    put_old("notes.md", "as it was");
    const ConvertedFolder made = convert();
    const NamedTensors was = read_torch_file(kState + form + ".bin").tensors,
                       now = read_safetensors(new_ + "/model.safetensors").tensors;
    EXPECT_EQ(made.tensors, 14);
    ASSERT_EQ(now.size(), was.size());
    for (const auto& [name, tensor] : was) EXPECT_TRUE(equal_bits(tensor, now.at(name))) << name;
    EXPECT_EQ(text_of(new_ + "/config.json"), text_of(old_ + "/config.json"));
    EXPECT_EQ(text_of(new_ + "/notes.md"), "as it was");
    EXPECT_EQ(text_of(new_ + "/1_Pooling/config.json"), "{}");
    EXPECT_FALSE(std::filesystem::exists(new_ + "/pytorch_model.bin"));
    EXPECT_EQ(Tokenizer::load(new_ + "/tokenizer.json").encode_input("cat").ids, (std::vector<int32_t>{2, 5, 3}));
    EXPECT_TRUE(says(made, "'tied' is 'weight'"));
    EXPECT_TRUE(says(made, "'steps' is no tensor"));
  }
}

TEST_F(ConvertFolder, ShardsOfPicklesAreReadByTheirIndex) {
  put_state("zip", "pytorch_model-00001-of-00001.bin");
  put_old("config.json", "{\"model_type\": \"bert\"}");
  nlohmann::json index;
  for (const auto& [name, tensor] : read_torch_file(kState + "zip.bin").tensors)
    index["weight_map"][name] = "pytorch_model-00001-of-00001.bin";
  put_old("pytorch_model.bin.index.json", index.dump());
  EXPECT_EQ(convert().tensors, 14);
  EXPECT_FALSE(std::filesystem::exists(new_ + "/pytorch_model-00001-of-00001.bin"));
  EXPECT_FALSE(std::filesystem::exists(new_ + "/pytorch_model.bin.index.json"));

  std::filesystem::remove_all(new_);
  index["weight_map"]["absent"] = "pytorch_model-00001-of-00001.bin";
  put_old("pytorch_model.bin.index.json", index.dump());
  EXPECT_TRUE(refused().says("has no tensor 'absent'"));
  index["weight_map"]["absent"] = "../elsewhere.bin";
  put_old("pytorch_model.bin.index.json", index.dump());
  EXPECT_TRUE(refused().says("in the same folder"));
  index["weight_map"].erase("absent");
  index["weight_map"].erase("scalar");
  put_old("pytorch_model.bin.index.json", index.dump());
  EXPECT_TRUE(refused().says("the tensor 'scalar'"));
}

TEST_F(ConvertFolder, AnotherTypeRoundsOnceAndIsSaidInTheConfig) {
  std::filesystem::remove_all(old_);
  test::put_encoder(old_, "bert_masked");
  const ConvertedFolder made = convert({.stored = DType::bf16});
  EXPECT_EQ(made.description, "bert masked language model");
  EXPECT_EQ(made.verb, "fill");
  const NamedTensors was = read_safetensors(old_ + "/model.safetensors").tensors;
  for (const auto& [name, tensor] : read_safetensors(new_ + "/model.safetensors").tensors)
    EXPECT_TRUE(equal_bits(tensor, is_float(tensor.dtype()) ? was.at(name).to(DType::bf16) : was.at(name))) << name;
  EXPECT_EQ(nlohmann::json::parse(text_of(new_ + "/config.json")).value("dtype", ""), "bfloat16");
  Pretrained::load(new_);
}

TEST_F(ConvertFolder, ANumberThatTheTypeDoesNotHoldIsRefused) {
  write_safetensors(old_ + "/model.safetensors", {.tensors = {{"w", tensor<float>({1, 70000}, {2})}}, .metadata = {}});
  put_old("config.json", "{\"model_type\": \"bert\"}");
  EXPECT_TRUE(refused({.stored = DType::f16}).says("'w' holds 70000, which f16 does not"));
  EXPECT_EQ(convert({.stored = DType::bf16}).tensors, 1);
}

TEST_F(ConvertFolder, AFamilyIsToldByTensorsOrByName) {
  std::filesystem::remove_all(old_);
  for (const char* name : {"bert_masked", "bert_body"}) {
    test::put_encoder(old_, name);
    auto config = nlohmann::json::parse(text_of(old_ + "/config.json"));
    config.erase("model_type");
    put_old("config.json", config.dump());
    EXPECT_TRUE(folder_facts(old_).guessed) << name;
    EXPECT_EQ(folder_facts(old_).kind, "bert") << name;
    const ConvertedFolder made = convert();
    EXPECT_TRUE(says(made, "it is bert by its tensors")) << name;
    EXPECT_FALSE(folder_facts(new_).guessed) << name;
    std::filesystem::remove_all(new_);
    EXPECT_EQ(nlohmann::json::parse(text_of(old_ + "/config.json")).count("model_type"), 0U);
    convert({.as = "bert"});
    EXPECT_EQ(nlohmann::json::parse(text_of(new_ + "/config.json"))["model_type"], "bert") << name;
    std::filesystem::remove_all(new_);
  }
  EXPECT_TRUE(refused({.as = "bertt"}).says("'bertt'"));
  put_old("config.json", "{\"model_type\": \"bert\"}");
  EXPECT_TRUE(refused({.as = "gpt2"}).says("expected gpt2, as was said"));
}

TEST_F(ConvertFolder, WrongFoldersAreRefusedInOneSentence) {
  EXPECT_TRUE(refused().says("holds no config.json"));
  put_old("config.json", "{\"model_type\": \"bert\"}");
  EXPECT_TRUE(refused().says("holds no weights"));
  put_old("pytorch_model.bin", "no pickle at all");
  EXPECT_TRUE(refused().says("is no file of torch.save"));
  EXPECT_TRUE(refusal_of([&] { convert_folder(old_, old_); }).says("is there already"));
  EXPECT_TRUE(refusal_of([&] { convert_folder(old_, old_ + "/inner"); }).says("lies in"));
  EXPECT_TRUE(refusal_of([&] { convert_folder(folder_ / "nowhere", new_); }).says("is not there"));
  EXPECT_TRUE(refusal_of([&] { Pretrained::load(old_); }).says("is read by `multihead convert` alone"));
}

}  // namespace
}  // namespace mh
