// Every family and head beside transformers in f64, and that no tensor of a folder goes unread.
#include "multihead/models/pretrained/families.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/reduce.h"
#include "tests/models/golden_folder.h"
#include "tests/models/golden_write.h"

namespace mh {
namespace {

using test::GoldenFolder;

TEST(Families, AnswerAsTransformersDoes) {
  for (const std::string& name : GoldenFolder::names()) {
    SCOPED_TRACE(name);
    const GoldenFolder folder(name);
    const Pretrained model = Pretrained::load(folder.path);
    EXPECT_TRUE(model.unused().empty()) << model.unused().front();
    EXPECT_LT(folder.error(model.forward(folder.inputs())), 2e-5);
  }
}

// Unpacked, with a tape open: what fine-tuning runs. Every parameter gets a gradient.
TEST(Families, AnswerAlikeWhileTraining) {
  for (const std::string& name : GoldenFolder::names()) {
    SCOPED_TRACE(name);
    const GoldenFolder folder(name);
    const Pretrained model = Pretrained::load(folder.path, {.trainable = true});
    Tape tape;
    const ModelOutputs outputs = model.forward(folder.inputs(false));
    Tensor loss;
    for (const auto& [output, tensor] : outputs.tensors) {
      const Tensor part = sum(square(tensor));
      loss = loss ? add(loss, part) : part;
      if (folder.golden.tensors.count("output." + output) != 0) {
        EXPECT_LT(test::error_of(tensor.detach().reshape(folder.golden.tensors.at("output." + output).shape()),
                                 folder.golden.tensors.at("output." + output)),
                  2e-5)
            << output;
      }
    }
    const Gradients gradients = tape.backward(loss);
    for (const auto& param : model.params().all()) EXPECT_TRUE(gradients.of(param->value)) << param->name;
  }
}

bool differs(const ModelOutputs& a, const ModelOutputs& b) {
  for (const auto& [name, tensor] : a.tensors) {
    const Tensor x = tensor.contiguous(), y = b.tensors.at(name).contiguous();
    for (int64_t i = 0; i < x.count(); ++i)
      if (x.data<float>()[i] != y.data<float>()[i]) return true;
  }
  return false;
}

// A tensor whose change no output shows would be one that nobody reads.
TEST(Families, ReadEveryTensor) {
  for (const std::string& name : GoldenFolder::names()) {
    const GoldenFolder folder(name);
    const ModelOutputs before = Pretrained::load(folder.path).forward(folder.inputs(false));
    Safetensors file = read_safetensors(folder.path + "/model.safetensors");
    const TemporaryFolder changed;
    put_text(changed / "config.json", text_of(folder.path + "/config.json"));
    for (auto& [tensor, value] : file.tensors) {
      // Sinusoids, which are made anew.
      if (name.starts_with("pegasus") && tensor.ends_with("embed_positions.weight")) continue;
      const Tensor kept = value;
      value = kept.clone();
      for (int64_t i = 0; i < value.count(); ++i) value.data<float>()[i] += 0.05F * static_cast<float>(i % 3 + 1);
      test::put_weights(changed / "model.safetensors", file);
      EXPECT_TRUE(differs(before, Pretrained::load(changed.path()).forward(folder.inputs(false))))
          << name << ": " << tensor;
      value = kept;
    }
  }
}

}  // namespace
}  // namespace mh
