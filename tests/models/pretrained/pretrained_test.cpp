// Folders as they are met: written back, in halves, in shards, under old names, with and without ties.
#include "multihead/models/pretrained/pretrained.h"

#include <nlohmann/json.hpp>

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/reduce.h"
#include "tests/harness/refusal.h"
#include "tests/models/golden_folder.h"
#include "tests/models/golden_write.h"

namespace mh {
namespace {

using test::GoldenFolder;
using test::put_weights;
using Json = nlohmann::json;

constexpr const char* kWeights = "model.safetensors";

// A copy of a golden folder, to be changed.
struct Changed {
  explicit Changed(const std::string& name)
      : golden(name),
        file(read_safetensors(golden.path + "/" + kWeights)),
        config(text_of(golden.path + "/config.json")) {}

  const std::string& write() {
    put_text(folder / "config.json", config);
    put_weights(folder / kWeights, file);
    return folder.path();
  }
  Pretrained load(const PretrainedOptions& options = {}) { return Pretrained::load(write(), options); }
  void rename(const std::string& from, const std::string& to) {
    file.tensors[to] = file.tensors.at(from);
    file.tensors.erase(from);
  }
  void set(const std::string& key, const Json& value) {
    Json all = Json::parse(config);
    all[key] = value;
    config = all.dump();
  }
  // The rest of the sentence in which the folder is refused.
  std::string refusal() {
    write();
    return refusal_of([&] { Pretrained::load(folder.path()); }).sentence;
  }

  GoldenFolder golden;
  Safetensors file;
  std::string config;
  TemporaryFolder folder;
};

TEST(Pretrained, SavesEveryTensorsBitsAndEveryKey) {
  for (const std::string& name : GoldenFolder::names()) {
    for (const bool trainable : {false, true}) {
      Changed changed(name);
      changed.set("a_key_of_somebody", {{"kept", true}});
      changed.write();
      const TemporaryFolder out;
      Pretrained::load(changed.folder.path(), {.trainable = trainable}).save(out.path());
      EXPECT_EQ(Json::parse(text_of(out / "config.json")), Json::parse(changed.config)) << name;
      const Safetensors saved = read_safetensors(out / kWeights);
      EXPECT_EQ(saved.tensors.size(), changed.file.tensors.size());
      for (const auto& [tensor, value] : changed.file.tensors)
        EXPECT_TRUE(test::same_bytes(saved.tensors.at(tensor), value)) << name << ": " << tensor;
    }
  }
}

// Without a folder to begin with: config and names come from the family alone.
TEST(Pretrained, FreshModelsAreWrittenAsFoldersOfTheirFamily) {
  for (const std::string& name : GoldenFolder::names()) {
    SCOPED_TRACE(name);
    const GoldenFolder golden(name);
    Architecture plan = Pretrained::load(golden.path).architecture();
    const Json config = Json::parse(plan.config);
    plan.config.clear();
    const Pretrained model = Pretrained::fresh(plan, 7);
    const TemporaryFolder out;
    model.save(out.path());
    const Pretrained again = Pretrained::load(out.path());
    EXPECT_TRUE(again.unused().empty());
    const ModelOutputs a = model.forward(golden.inputs(false)), b = again.forward(golden.inputs(false));
    EXPECT_EQ(a.tensors.size(), b.tensors.size());
    for (const auto& [output, tensor] : a.tensors)
      EXPECT_LT(test::error_of(b.tensors.at(output), tensor.detach()), 1e-5) << output;
    const NamedTensors ours = read_safetensors(out / kWeights).tensors;
    for (const auto& [tensor, value] : read_safetensors(golden.path + "/" + kWeights).tensors) {
      if (name.starts_with("pegasus") && tensor.ends_with("embed_positions.weight")) continue;  // sinusoids, made anew
      EXPECT_TRUE(ours.count(tensor) != 0 && ours.at(tensor).shape() == value.shape()) << tensor;
    }
    const Json written = Json::parse(text_of(out / "config.json"));
    for (const char* key : {"model_type", "architectures"}) EXPECT_EQ(written[key], config[key]);
  }
}

TEST(Pretrained, SavesWhatTrainingChanged) {
  Changed changed("modernbert_token");
  const Pretrained model = changed.load({.trainable = true});
  for (const auto& param : model.params().all()) {
    float* values = param->value.detach().data<float>();
    for (int64_t i = 0; i < param->value.count(); ++i) values[i] += 0.01F * static_cast<float>(i % 5);
  }
  const TemporaryFolder out;
  model.save(out.path());
  const ModelOutputs a = model.forward(changed.golden.inputs(false));
  const ModelOutputs b = Pretrained::load(out.path()).forward(changed.golden.inputs(false));
  EXPECT_LT(test::error_of(b["logits"], a["logits"].detach()), 1e-5);
  EXPECT_GT(test::error_of(b["logits"],
                           Pretrained::load(changed.golden.path).forward(changed.golden.inputs(false))["logits"]),
            1e-3);
}

TEST(Pretrained, HalvesStayHalvesInTheFileAndRunInF32) {
  for (const DType type : {DType::bf16, DType::f16}) {
    for (const char* name : {"bert_masked", "albert_body", "mpnet_body", "vit_body", "deberta_token"}) {
      SCOPED_TRACE(name);
      Changed halves(name), widened(name);
      for (auto& [tensor, value] : halves.file.tensors) value = value.to(type);
      for (auto& [tensor, value] : widened.file.tensors) value = value.to(type).to(DType::f32);
      const ModelOutputs a = halves.load().forward(halves.golden.inputs(false));
      const ModelOutputs b = widened.load().forward(halves.golden.inputs(false));
      for (const auto& [output, tensor] : a.tensors)
        EXPECT_LT(test::error_of(tensor, b.tensors.at(output)), 1e-6) << output;
      const TemporaryFolder out;
      Pretrained::load(halves.folder.path(), {.trainable = true}).save(out.path());
      for (const auto& [tensor, value] : read_safetensors(out / kWeights).tensors)
        EXPECT_TRUE(test::same_bytes(value, halves.file.tensors.at(tensor))) << tensor;
    }
  }
}

TEST(Pretrained, ReadsShards) {
  Changed changed("bert_sequence");
  put_text(changed.folder / "config.json", changed.config);
  Json index{{"metadata", {{"total_size", 1}}}};
  Safetensors shards[2];
  int n = 0;
  for (const auto& [name, tensor] : changed.file.tensors) {
    shards[n % 2].tensors[name] = tensor;
    index["weight_map"][name] = n++ % 2 == 0 ? "a.safetensors" : "b.safetensors";
  }
  put_weights(changed.folder / "a.safetensors", shards[0]);
  put_weights(changed.folder / "b.safetensors", shards[1]);
  const auto load = [&](const Json& said) {
    put_text(changed.folder / "model.safetensors.index.json", said.dump());
    return Pretrained::load(changed.folder.path());
  };
  EXPECT_LT(changed.golden.error(load(index).forward(changed.golden.inputs())), 2e-5);

  const std::string first = changed.file.tensors.begin()->first;
  for (const char* shard : {"../a.safetensors", "/etc/passwd", "..", "", "x/a.safetensors"}) {
    Json wrong = index;
    wrong["weight_map"][first] = shard;
    const Refusal refusal = refusal_of([&] { load(wrong); });
    EXPECT_TRUE(refusal.says("expected the name of a file in the same folder")) << refusal.sentence;
  }
  Json moved = index;
  moved["weight_map"][first] = "b.safetensors";
  EXPECT_TRUE(refusal_of([&] { load(moved); }).says("is in another shard by the index"));
  Json unlisted = index;
  unlisted["weight_map"].erase(first);
  EXPECT_TRUE(refusal_of([&] { load(unlisted); }).says("is not in the index"));
  Json added = index;
  added["weight_map"]["more"] = "b.safetensors";
  EXPECT_TRUE(refusal_of([&] { load(added); }).says("has no tensor 'more'"));
}

TEST(Pretrained, ReadsNamesWithAndWithoutThePrefixAndOldOnes) {
  Changed changed("bert_sequence");
  for (const auto& [name, tensor] : Safetensors(changed.file).tensors) {
    std::string plain = name.starts_with("bert.") ? name.substr(5) : name;
    if (const size_t at = plain.find("LayerNorm.weight"); at != plain.npos) plain.replace(at + 10, 6, "gamma");
    if (const size_t at = plain.find("LayerNorm.bias"); at != plain.npos) plain.replace(at + 10, 4, "beta");
    if (plain != name) changed.rename(name, plain);
  }
  changed.file.tensors["embeddings.position_ids"] = zeros({1, 11}, DType::i64);
  const Pretrained model = changed.load();
  EXPECT_TRUE(model.unused().empty());
  EXPECT_LT(changed.golden.error(model.forward(changed.golden.inputs())), 2e-5);
}

TEST(Pretrained, TheFileDecidesWhetherTablesAreOne) {
  const std::string table = "bert.embeddings.word_embeddings.weight", output = "cls.predictions.decoder.weight";
  const auto answer = [](Changed& changed) { return changed.load().forward(changed.golden.inputs(false))["logits"]; };
  Changed plain("bert_masked"), twice("bert_masked"), other("bert_masked"), moved("bert_masked"), none("bert_masked");
  const Tensor expected = answer(plain);
  twice.file.tensors[output] = twice.file.tensors.at(table);
  EXPECT_TRUE(test::same_bytes(answer(twice), expected));
  moved.rename(table, output);
  EXPECT_TRUE(test::same_bytes(answer(moved), expected));
  other.file.tensors[output] = zeros({19, 8});
  other.set("tie_word_embeddings", true);
  EXPECT_GT(test::error_of(answer(other), expected), 0.1);
  none.file.tensors.erase(table);
  EXPECT_NE(none.refusal().find("has no embeddings.word_embeddings.weight"), std::string::npos) << none.refusal();
}

TEST(Pretrained, TheClassIsGuessedWhereTheConfigNamesNone) {
  for (const char* name :
       {"bert_masked", "bert_question", "roberta_sequence", "distilbert_masked", "albert_sequence"}) {
    Changed changed(name);
    Json config = Json::parse(changed.config);
    config.erase("architectures");
    config.erase("model_type");
    changed.config = config.dump();
    const std::string type = Json::parse(text_of(changed.golden.path + "/config.json"))["model_type"];
    EXPECT_LT(changed.golden.error(changed.load({.as = type}).forward(changed.golden.inputs())), 2e-5) << name;
  }
}

TEST(Pretrained, SaysWhatItDoesNotRead) {
  Changed changed("bert_body");
  changed.file.tensors["cls.seq_relationship.weight"] = zeros({2, 8});
  EXPECT_EQ(changed.load().unused(), std::vector<std::string>{"cls.seq_relationship.weight"});
}

// Trains a table of labels to one class: the loss falls.
TEST(Pretrained, LearnsFromItsGradients) {
  Changed changed("distilbert_sequence");
  const Pretrained model = changed.load({.trainable = true});
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    Tape tape;
    Pass pass = Pass::inference();
    const Tensor loss = sum(square(model.forward(changed.golden.inputs(false), pass)["logits"]));
    (step == 0 ? first : last) = loss.item({});
    const Gradients gradients = tape.backward(loss);
    for (const auto& param : model.params().all()) {
      const Tensor change = gradients.of(param->value).contiguous();
      for (int64_t i = 0; i < change.count(); ++i)
        param->value.detach().data<float>()[i] -= 0.002F * change.data<float>()[i];
    }
  }
  EXPECT_LT(last, 0.5 * first);
}

}  // namespace
}  // namespace mh
