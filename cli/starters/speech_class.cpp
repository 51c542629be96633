// The starter of `multihead new speech_class`.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "cli/starters/starters.h"
#include "multihead/base/random.h"
#include "multihead/io/sounds/wav_file.h"

namespace mh::cli {

namespace {

constexpr const char* kSpeechConfig = R"text(# A recording gets a label. To train: multihead train FOLDER/config.toml
# To use it: multihead classify FOLDER/model RECORDING...
# multihead train --keys says what every key means.
[task]
kind = "speech_class"

[data]
train = "FOLDER/recordings"    # your own: a folder for each label with WAV files in it; or a table of files and labels
hold_out_share = 0.2           # kept to validate with; or: valid = "FOLDER/valid"
examples_per_batch = 16
frames = 60                    # of 10 ms: recordings are cut or filled up to so many
shift = 8                      # moved in time by up to so many frames, new in every epoch
time_mask = 8                  # and up to so many in a row hidden
mel_mask = 6                   # and so many of the 40 bands of frequencies

[model]
patch = 4                      # frames of a token
width = 64
heads = 4
feed_forward = 128
encoder_layers = 2
activation = "gelu"
dropout = 0.1

[optimizer]
learning_rate = 1e-3
weight_decay = 0.05
warmup = 20

[train]
output = "FOLDER/model"
epochs = 40
label_smoothing = 0.1
)text";

constexpr int64_t kRate = 8000, kRecordings = 12;
constexpr const char* kTones[] = {"falling", "rising", "steady"};

// Half a second of a tone whose pitch falls, rises or stays, with noise around it.
std::string played(int tone, uint64_t number) {
  Random random(19, number);
  Sound out{.rate = kRate, .samples = {}};
  const double begin = random.uniform(400, 900), change = (tone == 0   ? -1
                                                           : tone == 1 ? 1
                                                                       : 0) *
                                                          random.uniform(0.4, 0.8);
  const double loud = random.uniform(0.2, 0.6);
  const auto first = static_cast<int64_t>(random.uniform(0, 0.08) * kRate);
  double phase = 0;
  for (int64_t n = 0; n < kRate / 2; ++n) {
    const double t = static_cast<double>(n) / (kRate / 2.0);
    phase += 2 * std::numbers::pi * begin * (1 + change * t) / kRate;
    out.samples.push_back(static_cast<float>((n < first ? 0 : loud * std::sin(phase)) + 0.01 * random.normal()));
  }
  return encode_wav(out);
}

}  // namespace

Starter speech_class_starter() {
  Starter out{.task = "speech_class",
              .rows = "a recording lies in the folder of its label",
              .files = {{"config.toml", kSpeechConfig}}};
  for (int tone = 0; tone < 3; ++tone)
    for (int64_t n = 0; n < kRecordings; ++n)
      out.files.push_back({fmt::format("recordings/{}/{:02}.wav", kTones[tone], n),
                           played(tone, static_cast<uint64_t>(tone * kRecordings + n))});
  return out;
}

}  // namespace mh::cli
