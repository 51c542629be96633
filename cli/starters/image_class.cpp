// The starter of `multihead new image_class`.
#include <fmt/format.h>

#include <cmath>

#include "cli/starters/starters.h"
#include "multihead/base/random.h"
#include "multihead/io/images/image_file.h"

namespace mh::cli {

namespace {

constexpr const char* kImageConfig = R"text(# A picture gets a label. To train: multihead train FOLDER/config.toml
# To use it: multihead classify FOLDER/model PICTURE...
# multihead train --keys says what every key means.
[task]
kind = "image_class"

[data]
train = "FOLDER/pictures"      # your own: a folder for each label with PNG, JPEG or PPM files in it
hold_out_share = 0.2           # kept to validate with; or: valid = "FOLDER/valid"
examples_per_batch = 16
# image_size = 32              # pictures are brought to so many pixels a side; else to the size of the first
shift = 2                      # moved by up to so many pixels, new in every epoch
flip = true                    # and mirrored: not where left and right have a meaning, as in letters
colour_noise = 0.1             # and changed in contrast and colour

[model]
patch = 4                      # pixels a side of the squares that are the model's tokens
width = 64
heads = 4
feed_forward = 128
encoder_layers = 2
activation = "gelu"
dropout = 0.0
# from = "FOLDER"              # a folder of a ViT or DeiT to start from; it says how large pictures are

[optimizer]
learning_rate = 2e-3
weight_decay = 0.05
warmup = 20

[train]
output = "FOLDER/model"
epochs = 60
label_smoothing = 0.1
)text";

constexpr int64_t kSide = 16, kOfEach = 20;
constexpr const char* kShapes[] = {"circle", "cross", "square"};

// Whether a point, seen from the middle of a shape of this size, belongs to it.
bool is_inside(int shape, double x, double y, double size) {
  const double across = std::abs(x), down = std::abs(y);
  if (shape == 0) return x * x + y * y <= size * size;
  if (shape == 1) return (across <= size / 3 && down <= size) || (down <= size / 3 && across <= size);
  return across <= 0.9 * size && down <= 0.9 * size;
}

// A shape of one colour on a ground of another, both with some noise.
std::string drawn(int shape, uint64_t number) {
  Random random(17, number);
  const double x = random.uniform(6, 10), y = random.uniform(6, 10), size = random.uniform(3.5, 5.5);
  double ground[3], ink[3];
  for (int c = 0; c < 3; ++c) {
    ground[c] = random.uniform(10, 110);
    ink[c] = random.uniform(140, 245);
  }
  const Tensor image = empty({kSide, kSide, 3}, DType::u8);
  uint8_t* to = image.data<uint8_t>();
  for (int64_t i = 0; i < kSide; ++i)
    for (int64_t j = 0; j < kSide; ++j) {
      const bool inside = is_inside(shape, static_cast<double>(j) - x, static_cast<double>(i) - y, size);
      for (int c = 0; c < 3; ++c) *to++ = static_cast<uint8_t>((inside ? ink : ground)[c] + random.uniform(-10, 10));
    }
  return encode_png(image);
}

}  // namespace

Starter image_class_starter() {
  Starter out{.task = "image_class",
              .rows = "a picture lies in the folder of its label",
              .files = {{"config.toml", kImageConfig}}};
  for (int shape = 0; shape < 3; ++shape)
    for (int64_t n = 0; n < kOfEach; ++n)
      out.files.push_back({fmt::format("pictures/{}/{:02}.png", kShapes[shape], n),
                           drawn(shape, static_cast<uint64_t>(shape * kOfEach + n))});
  return out;
}

}  // namespace mh::cli
