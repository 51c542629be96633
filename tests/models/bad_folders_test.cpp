// Folders that cannot be loaded, and the one sentence that says why.
#include <nlohmann/json.hpp>

#include "multihead/models/pretrained/pretrained.h"
#include "tests/harness/refusal.h"
#include "tests/models/golden_folder.h"
#include "tests/models/golden_write.h"

namespace mh {
namespace {

using Json = nlohmann::json;

struct Folder {
  Json config;
  Safetensors file;
};

struct BadFolder {
  const char* what;
  std::function<void(Folder&)> spoil;
  const char* says;
};

const BadFolder kBad[] = {
    {"a tensor is missing", [](Folder& f) { f.file.tensors.erase("bert.encoder.layer.1.output.dense.weight"); },
     "the file has no encoder.layer.1.output.dense.weight; expected f32 [8, 12]"},
    {"a tensor has another shape",
     [](Folder& f) {
       f.file.tensors["bert.encoder.layer.0.attention.self.key.weight"] = zeros({8, 9});
     },
     "encoder.layer.0.attention.self.key.weight does not fit the model; expected [8, 8]; the file has [8, 9]"},
    {"a tensor holds integers",
     [](Folder& f) {
       f.file.tensors["classifier.weight"] = zeros({3, 8}, DType::i64);
     },
     "classifier.weight holds i64; expected floats"},
    {"one parameter stands twice and differs",
     [](Folder& f) {
       f.file.tensors["pooler.dense.weight"] = zeros({8, 8});
     },
     "are one parameter of the model, and differ"},
    {"the family is not known", [](Folder& f) { f.config["model_type"] = "martian"; },
     "model_type is 'martian'; expected one of"},
    {"no family is named, and no tensor tells one",
     [](Folder& f) {
       f.config.erase("model_type");
       f.file.tensors.erase("bert.embeddings.word_embeddings.weight");
     },
     "has no model_type"},
    {"the class is not known", [](Folder& f) { f.config["architectures"] = {"BertForMars"}; },
     "architectures names 'BertForMars'; expected one of BertForMaskedLM"},
    {"the width is text", [](Folder& f) { f.config["hidden_size"] = "8"; },
     "hidden_size is \"8\"; expected a whole number"},
    {"the width is negative", [](Folder& f) { f.config["hidden_size"] = -8; }, "hidden_size is -8"},
    {"the width is 0", [](Folder& f) { f.config["hidden_size"] = 0; }, "hidden_size is 0"},
    {"the width is a fraction", [](Folder& f) { f.config["hidden_size"] = 8.5; }, "hidden_size is 8.5"},
    {"the width is past 31 bits", [](Folder& f) { f.config["hidden_size"] = 1LL << 40; },
     "hidden_size is 1099511627776"},
    {"the width is huge", [](Folder& f) { f.config["hidden_size"] = 2147483646; }, "does not fit the model"},
    {"the layers are huge", [](Folder& f) { f.config["num_hidden_layers"] = 2147483647; },
     "num_hidden_layers is 2147483647; expected a whole number from 1 to 4096"},
    {"heads do not divide the width", [](Folder& f) { f.config["num_attention_heads"] = 3; },
     "3 heads do not divide the width 8"},
    {"the activation is not known", [](Folder& f) { f.config["hidden_act"] = "mish"; },
     "hidden_act is 'mish'; expected one of \"relu\""},
    {"the positions are not supported", [](Folder& f) { f.config["position_embedding_type"] = "relative_key"; },
     "position_embedding_type is 'relative_key'; expected \"absolute\""},
    {"a label is missing",
     [](Folder& f) {
       f.config["id2label"] = {{"0", "a"}, {"2", "c"}};
     },
     "id2label is"},
    {"labels are more than the head's", [](Folder& f) { f.config["id2label"]["3"] = "d"; },
     "classifier.weight does not fit the model; expected [4, 8]; the file has [3, 8]"},
    {"the labels are past counting",
     [](Folder& f) {
       f.config.erase("id2label");
       f.config["num_labels"] = 2147483647;
     },
     "num_labels is 2147483647; expected at most 1048576"},
};

TEST(BadFolders, AreRefusedInOneSentence) {
  const test::GoldenFolder golden("bert_sequence");
  for (const BadFolder& bad : kBad) {
    Folder folder{Json::parse(text_of(golden.path + "/config.json")),
                  read_safetensors(golden.path + "/model.safetensors")};
    bad.spoil(folder);
    const TemporaryFolder at;
    put_text(at / "config.json", folder.config.dump());
    test::put_weights(at / "model.safetensors", folder.file);
    const Refusal refusal = refusal_of([&] { Pretrained::load(at.path()); });
    EXPECT_TRUE(refusal.says(bad.says)) << bad.what << ": " << refusal.sentence;
    EXPECT_EQ(refusal.sentence.find('\n'), std::string::npos);
    EXPECT_NE(refusal.kind, ErrorKind::internal) << bad.what;
  }
}

TEST(BadFolders, FilesThatAreMissingOrBrokenAreNamed) {
  const test::GoldenFolder golden("bert_body");
  const TemporaryFolder at;
  const auto says = [&](const std::string& part) {
    const Refusal refusal = refusal_of([&] { Pretrained::load(at.path()); });
    EXPECT_TRUE(refusal.says(part)) << refusal.sentence;
    EXPECT_EQ(refusal.kind, ErrorKind::io);
  };
  EXPECT_TRUE(refusal_of([&] { Pretrained::load(at / "nowhere"); }).says("is not there"));
  says("holds no config.json");
  put_text(at / "config.json", text_of(golden.path + "/config.json"));
  says("holds no model.safetensors");
  put_text(at / "pytorch_model.bin", "?");
  says("`multihead convert`");
  put_text(at / "model.safetensors.index.json", "{}");
  says("has no weight_map");
  put_text(at / "model.safetensors.index.json", "{");
  says("not valid JSON");
  put_text(at / "model.safetensors", "?");
  says("1 bytes are too few");

  // Two tensors that share bytes.
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  put_text(at / "model.safetensors", bytes + header + std::string(12, '\0'));
  says("tensor 'b' begins at byte 4 of the data; expected 8");
  for (const char* config : {"", "[]", "{\"model_type\": \"bert\", \"hidden_size\": NaN}", "{\"model_type\": 3}"}) {
    put_text(at / "config.json", config);
    says("config.json");
  }
}

TEST(BadFolders, InputsThatDoNotFitAreRefused) {
  const test::GoldenFolder golden("bert_sequence"), image("vit_image");
  const Pretrained model = Pretrained::load(golden.path), vision = Pretrained::load(image.path);
  const auto says = [](const Pretrained& on, const ModelInputs& inputs, const std::string& part) {
    const Refusal refusal = refusal_of([&] { on.forward(inputs); });
    EXPECT_TRUE(refusal.says(part)) << refusal.sentence;
  };
  says(model, {}, "tokens are missing; a bert model reads them");
  says(vision, golden.inputs(), "pixels are missing");
  says(model, {.tokens = golden.inputs().tokens, .pixels = image.input("pixels")}, "pixels are given");
  says(model, {.tokens = token_batch({{3}, {}})}, "sequence 1 is empty");
  says(model, {.tokens = token_batch({{3, 19}})}, "is 19; expected 0 or more and below 19");
  says(model, {.tokens = token_batch({std::vector<int32_t>(12, 4)})}, "a sequence of 12 tokens; expected at most 11");
  says(model, {.tokens = token_batch({{3, 4}}), .types = zeros({1}, DType::i32)},
       "types of 1 tokens; expected one for each token, 2");
  says(model, {.tokens = token_batch({{3}}), .decoder = token_batch({{3}})}, "the decoder's tokens are given");
  says(vision, {.pixels = zeros({1, 3, 6, 5})}, "expected f32 (B, 3, 6, 6)");
  EXPECT_EQ(model.forward({.tokens = token_batch({})})["logits"].shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace mh
