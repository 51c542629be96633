// Pictures and recordings to batches and losses.
#include "multihead/tasks/pixels/pixel_task.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/images/image_file.h"
#include "multihead/tasks/class_loss.h"
#include "multihead/tasks/models/start_weights.h"
#include "multihead/tasks/pixels/image_form.h"
#include "multihead/tasks/pixels/pixel_model.h"
#include "multihead/tasks/pixels/sound_form.h"
#include "multihead/tasks/readers/labelled_files.h"
#include "multihead/tasks/task_type.h"

namespace mh {

namespace {

constexpr const char *kImageClass = "image_class", *kSpeechClass = "speech_class";

// Pictures that come in IDX files are grey, or have their colours last.
Tensor first_picture(const DataConfig& data, const std::vector<std::string>& endings) {
  if (!data.train_target.empty()) return read_idx_images(data.train, data.train_target).rows.front().kept;
  const LabelledFiles files = read_labelled_files(data.train, data, endings);
  for (const LabelledFile& file : files.rows) {
    try {
      return read_image(file.path);
    } catch (const Error&) {
      // Counted with the others, once all are read.
    }
  }
  fail(ErrorKind::invalid_argument, "{}: none of its {} pictures can be read; expected PNG, JPEG or PPM files",
       printable_path(data.train), files.rows.size());
}

// The first recording that can be read says how many samples a second all have.
std::shared_ptr<const PixelForm> sound_form(const TaskSetup& setup) {
  const std::string folder = detail::describing_folder(setup);
  if (!folder.empty()) return form_of_folder(folder, setup.data);
  SoundPreparation preparation{.frames = setup.data.frames};
  const SoundVariation variation = sound_variation(setup.data);
  const LabelledFiles files =
      read_labelled_files(setup.data.train, setup.data, SoundForm(preparation, variation).endings());
  for (const LabelledFile& file : files.rows) {
    try {
      preparation.rate = read_wav(file.path).rate;
      return std::make_shared<SoundForm>(preparation, variation, setup.head.patch);
    } catch (const Error&) {
      // Counted with the others, once all are read.
    }
  }
  fail(ErrorKind::invalid_argument, "{}: none of its {} recordings can be read; expected WAV files",
       printable_path(setup.data.train), files.rows.size());
}

std::shared_ptr<const PixelForm> image_form(const TaskSetup& setup) {
  const std::string folder = detail::describing_folder(setup);
  if (!folder.empty()) return form_of_folder(folder, setup.data);
  ImagePreparation preparation;
  const Tensor first = first_picture(setup.data, ImageForm(preparation, {}).endings());
  const int64_t size = setup.data.image_size;
  preparation.height = size > 0 ? size : first.size(0);
  preparation.width = size > 0 ? size : first.size(1);
  if (first.size(2) == 1) preparation.mean = preparation.deviation = {0.5F};
  return std::make_shared<ImageForm>(preparation, image_variation(setup.data));
}

void check_pixel_settings(const TaskSetup& setup) {
  const DataConfig& data = setup.data;
  check(data.valid.empty() || data.train_target.empty() == data.valid_target.empty(),
        "config: data.{} names labels, and data.{} none; expected both, for IDX files, or neither",
        data.train_target.empty() ? "valid_target" : "train_target",
        data.train_target.empty() ? "train_target" : "valid_target");
  check(data.text != data.label, "config: data.text is column {}, data.label {}; expected different columns", data.text,
        data.label);
  const std::string& metric = setup.task.metric;
  check(metric.empty() || metric == "accuracy" || metric == "macro_f1" || metric == "matthews" || metric == "loss",
        "config: task.metric is \"{}\"; expected \"accuracy\", \"macro_f1\", \"matthews\" or \"loss\"", metric);
  check(setup.model.encoder_layers >= 1, "config: model.encoder_layers is 0; a classifier expects 1 or more");
  check(setup.recurrent.family().empty(), "config: model.kind is \"{}\"; expected \"transformer\", for a ViT",
        setup.recurrent.family());
}

StartModel refuse_other_start(const std::string& path) {
  fail(ErrorKind::invalid_argument,
       "config: model.from {} stands in no folder of a ViT or DeiT; expected config.json beside it",
       printable_path(path));
}

void check_speech_settings(const TaskSetup& setup) {
  check_pixel_settings(setup);
  check(setup.data.train_target.empty() && setup.data.valid_target.empty(),
        "config: data.{} is given, and recordings stand in folders or a table; expected none",
        setup.data.train_target.empty() ? "valid_target" : "train_target");
}

}  // namespace

TaskType speech_class_type() {
  TaskType out = image_class_type();
  out.kind = TaskKind::speech_class;
  out.name = out.model = kSpeechClass;
  out.learns = "the label of a recording, by a ViT over its frequencies";
  out.examples = "recordings with labels";
  out.use = "classify FOLDER RECORDING...";
  out.check = check_speech_settings;
  return out;
}

TaskType image_class_type() {
  return {.kind = TaskKind::image_class,
          .name = kImageClass,
          .learns = "the label of a picture, by a ViT",
          .examples = "pictures with labels",
          .model = kImageClass,
          .use = "classify FOLDER PICTURE...",
          .decoder = false,
          .families = true,
          .check = check_pixel_settings,
          .start = refuse_other_start,
          .make = [](const TaskSetup& setup) -> std::unique_ptr<Task> { return std::make_unique<PixelTask>(setup); }};
}

PixelExamples read_pixel_examples(const std::string& path, const std::string& labels, const DataConfig& data,
                                  const PixelForm& form) {
  const auto* images = dynamic_cast<const ImageForm*>(&form);
  if (labels.empty() || images == nullptr) return read_pixel_files(path, data, form);
  PixelExamples out = read_idx_images(path, labels);
  for (PixelExample& row : out.rows) row.kept = fitted(row.kept, images->preparation());
  return out;
}

PixelTask::PixelTask(const TaskSetup& setup)
    : setup_(setup), form_(setup.task.kind == TaskKind::speech_class ? sound_form(setup) : image_form(setup)) {
  const DataConfig& data = setup.data;
  const bool hears = dynamic_cast<const SoundForm*>(form_.get()) != nullptr;
  check(hears == (setup.task.kind == TaskKind::speech_class), "config: model.from {} reads {}; expected a model of {}",
        setup.from, form_->examples(), task_type(setup.task.kind).name);
  train_ = read_pixel_examples(data.train, data.train_target, data, *form_);
  if (!data.valid.empty()) valid_ = read_pixel_examples(data.valid, data.valid_target, data, *form_);
  if (data.valid.empty() && data.validates()) valid_ = train_.hold_out(data.held_out(train_.size()));
  if (setup.events.on_message)
    for (const PixelExamples* examples : {&train_, &valid_})
      for (const std::string& sentence : examples->report) setup.events.on_message(sentence);
  labels_ = train_.labels();
  train_classes_ = train_.classes(labels_);
  valid_classes_ = valid_.classes(labels_);
  if (setup.task.class_weights == ClassWeights::balanced) weights_ = balanced_weights(train_classes_, labels_.size());
  order_.emplace(
      std::vector<ExampleLength>(static_cast<size_t>(train_.size()), {1, 1}),
      OrderOptions{.tokens_per_batch = data.examples_per_batch, .window = data.examples_per_batch, .seed = setup.seed});
}

PixelShape PixelTask::shape() const {
  PixelShape out = form_->shape();
  if (out.patch_height == 0) out.patch_height = out.patch_width = setup_.head.patch;
  return out;
}

TaskFacts PixelTask::facts() const {
  const std::string metric = setup_.task.metric.empty() ? "accuracy" : setup_.task.metric;
  TaskFacts out{.examples = fmt::format("{} with {} labels", form_->examples(), labels_.size()),
                .counted = form_->examples(),
                .watched = {.metric = metric, .higher_is_better = metric != "loss"},
                .train = train_.size(),
                .valid = valid_.size(),
                .tokens = train_.size()};
  if (!model_) return out;
  const Architecture& a = model_->architecture();
  const PatchEmbeddingOptions& p = *a.patches;
  out.source_tokens = train_.size() * p.rows();
  out.model = fmt::format("{}, width {}, {} heads, {} layers, {} x {} pixels in patches of {} x {}", a.family,
                          a.encoder->block.width, a.encoder->block.heads, a.encoder->layers, p.width, p.height,
                          p.patch_width, p.patch_height);
  return out;
}

std::unique_ptr<Batch> PixelTask::batch(const Position& at) const {
  const std::vector<int64_t> numbers = order_->examples(at);
  std::vector<Random> random;
  auto out = std::make_unique<PixelsOfOneBatch>();
  for (const int64_t n : numbers) {
    random.emplace_back(setup_.seed + 1, (static_cast<uint64_t>(at.epoch) << 32) + static_cast<uint64_t>(n));
    out->references.push_back(train_classes_[static_cast<size_t>(n)]);
  }
  out->pixels = stacked_pixels(*form_, train_, numbers, random);
  return out;
}

void PixelTask::make_model(std::shared_ptr<ParamStore> store) {
  model_.emplace(make_pixel_model(setup_, shape(), labels_, std::move(store)));
}

CrossEntropy PixelTask::loss(const Batch& batch, Pass& pass) const {
  const auto& given = dynamic_cast<const PixelsOfOneBatch&>(batch);
  return class_loss(pixel_logits(*model_, given.pixels, pass), given.references, setup_.smoothing, weights_);
}

Verdict PixelTask::validate(const ValidateOptions& options) {
  model_->pack(options.compute);
  Verdict out{.metrics = score_pixels(*model_, *form_, valid_, valid_classes_, options.compute).metrics()};
  out.watch(facts().watched.metric);
  return out;
}

}  // namespace mh
