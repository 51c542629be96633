// Between a configuration or a folder and a ViT.
#include "multihead/tasks/pixels/pixel_model.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"
#include "multihead/models/pretrained/families.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/ops/rows/activation.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/tasks/models/start_weights.h"
#include "multihead/tasks/pixels/image_form.h"
#include "multihead/tasks/pixels/sound_form.h"

namespace mh {

namespace {

constexpr int64_t kExamplesAtOnce = 64;

using PixelJson = nlohmann::ordered_json;

PixelJson sides_json(int64_t height, int64_t width) {
  return height == width ? PixelJson(height) : PixelJson{height, width};
}

const char* vit_activation(Middle middle) {
  switch (middle) {
    case Middle::relu: return "relu";
    case Middle::gelu: return "gelu";
    case Middle::gelu_tanh: return "gelu_new";
    default: break;
  }
  fail(ErrorKind::invalid_argument,
       "config: model.activation is gated, and the model is a ViT; expected \"relu\", \"gelu\" or \"gelu_tanh\"");
}

// A config.json as transformers would write it, of the sizes that [model] names.
std::string vit_config(const TransformerConfig& m, const PixelShape& shape) {
  return PixelJson{{"model_type", "vit"},
                   {"hidden_size", m.width},
                   {"num_hidden_layers", m.encoder_layers},
                   {"num_attention_heads", m.heads},
                   {"intermediate_size", m.feed_forward},
                   {"hidden_act", vit_activation(m.middle)},
                   {"hidden_dropout_prob", m.dropout},
                   {"attention_probs_dropout_prob", m.dropout},
                   {"image_size", sides_json(shape.height, shape.width)},
                   {"patch_size", sides_json(shape.patch_height, shape.patch_width)},
                   {"num_channels", shape.channels}}
      .dump();
}

void check_reads(const Architecture& a, const PixelShape& shape, const std::string& who) {
  const PatchEmbeddingOptions& p = *a.patches;
  const bool fits = p.channels == shape.channels && (shape.height == 0 || p.height == shape.height) &&
                    (shape.width == 0 || p.width == shape.width);
  check(fits, "{}: the examples have {} channels and {} x {} pixels, and the model reads {} and {} x {}", who,
        shape.channels, shape.width, shape.height, p.channels, p.width, p.height);
}

bool reads_images(const Architecture& a) { return a.patches && a.encoder && !a.decoder && !a.embedding; }

Classification one_of(const float* scores, const Labels& labels) {
  Classification out;
  out.scores.assign(scores, scores + labels.size());
  const auto best = std::max_element(out.scores.begin(), out.scores.end());
  out.score = *best;
  out.label = labels.name(best - out.scores.begin());
  return out;
}

Tensor joined(const std::vector<Tensor>& each) {
  const Shape one = each.front().shape();
  const Tensor out = empty({static_cast<int64_t>(each.size()), one[0], one[1], one[2]});
  float* to = out.data<float>();
  for (const Tensor& pixels : each) {
    check(pixels.shape() == one, "the examples of a batch have {} and {} pixels; expected one size", pixels.shape(),
          one);
    to = std::copy_n(pixels.data<float>(), pixels.count(), to);
  }
  return out;
}

}  // namespace

Pretrained make_pixel_model(const TaskSetup& setup, const PixelShape& shape, const Labels& labels,
                            std::shared_ptr<ParamStore> store) {
  const std::string folder = detail::describing_folder(setup), path = folder + "/config.json";
  std::string text;
  if (folder.empty()) {
    check(shape.height % shape.patch_height == 0 && shape.width % shape.patch_width == 0,
          "config: model.patch {} does not divide {} x {} pixels; expected a divisor, or another data.{}",
          setup.head.patch, shape.width, shape.height,
          setup.task.kind == TaskKind::speech_class ? "frames" : "image_size");
    text = vit_config(setup.model, shape);
  } else {
    const detail::FileBytes file = detail::read_file(path);
    text.assign(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  }
  Architecture a = read_config(text, folder.empty() ? "config" : path);
  check(reads_images(a), "config: model.from {} is a {} model; expected a ViT or DeiT", setup.from, a.family);
  check_reads(a, shape, "config: model.from " + setup.from);
  a.model_class.clear();
  a.head.kind = HeadKind::image;
  a.labels = labels.names();
  a.problem_type = "single_label_classification";
  if (folder.empty()) a.config.clear();
  Pretrained model = Pretrained::fresh(a, store);
  // A checkpoint brings the weights of a run that is gone on with.
  if (!folder.empty() && folder == setup.from)
    detail::copy_weights(Pretrained::load(folder, {.trainable = true}), model.architecture(), *store, setup.events);
  return model;
}

std::shared_ptr<const PixelForm> form_of_folder(const std::string& folder, const DataConfig& data) {
  const std::string sound = folder + "/" + kSoundFile;
  std::error_code ignored;
  if (std::filesystem::exists(sound, ignored))
    return std::make_shared<SoundForm>(read_sound_preparation(sound), sound_variation(data));
  return std::make_shared<ImageForm>(read_preparation(folder + "/preprocessor_config.json"), image_variation(data));
}

Tensor pixel_logits(const Pretrained& model, const Tensor& pixels, Pass& pass) {
  return model.forward({.pixels = pixels}, pass)["logits"];
}

PixelModel PixelModel::load(const std::string& folder, DType compute) {
  Pretrained model = Pretrained::load(folder, {.compute = compute});
  const Architecture& a = model.architecture();
  if (a.head.kind != HeadKind::image)
    fail(ErrorKind::io, "{}: is a {}; expected an image classifier: use `multihead {}`", printable_path(folder),
         name_of(a.head.kind), folder_facts(folder).verb());
  const std::shared_ptr<const PixelForm> form = form_of_folder(folder);
  check_reads(a, form->shape(), folder);
  Labels labels = detail::labels_of_folder(model, folder);
  return {std::move(model), form, std::move(labels), compute};
}

std::vector<Classification> PixelModel::classify(std::span<const Tensor> examples) const {
  const Architecture& a = model_.architecture();
  const bool alone = a.problem_type == "multi_label_classification" || labels_.size() == 1;
  std::vector<Classification> out;
  for (size_t begin = 0; begin < examples.size(); begin += kExamplesAtOnce) {
    std::vector<Tensor> pixels;
    for (size_t n = begin; n < std::min(examples.size(), begin + kExamplesAtOnce); ++n)
      pixels.push_back(form_->pixels(examples[n], nullptr));
    Pass pass = Pass::inference(compute_);
    const Tensor logits = pixel_logits(model_, joined(pixels), pass);
    const Tensor p = alone ? activation(logits, Activation::sigmoid) : softmax(logits);
    for (int64_t row = 0; row < p.size(0); ++row) out.push_back(one_of(p.data<float>() + row * p.size(1), labels_));
  }
  return out;
}

ClassScores PixelModel::score(const PixelExamples& examples) const {
  return score_pixels(model_, *form_, examples, examples.classes(labels_), compute_);
}

Tensor stacked_pixels(const PixelForm& form, const PixelExamples& examples, std::span<const int64_t> numbers,
                      std::span<Random> random) {
  std::vector<Tensor> pixels;
  for (size_t n = 0; n < numbers.size(); ++n)
    pixels.push_back(examples.pixels(form, numbers[n], random.empty() ? nullptr : &random[n]));
  return joined(pixels);
}

ClassScores score_pixels(const Pretrained& model, const PixelForm& form, const PixelExamples& examples,
                         const std::vector<int32_t>& classes, DType compute) {
  ClassScores out{.classes = model.architecture().head.outputs};
  for (int64_t begin = 0; begin < examples.size(); begin += kExamplesAtOnce) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(kExamplesAtOnce, examples.size() - begin)));
    std::iota(numbers.begin(), numbers.end(), begin);
    Pass pass = Pass::inference(compute);
    out.add(pixel_logits(model, stacked_pixels(form, examples, numbers), pass),
            {classes.begin() + begin, classes.begin() + begin + static_cast<int64_t>(numbers.size())});
  }
  return out;
}

}  // namespace mh
