// Short recordings whose label can be heard: how high the tone is.
#pragma once

#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>

#include "multihead/base/random.h"
#include "multihead/io/sounds/wav_file.h"
#include "tests/harness/temporary_folder.h"

namespace mh {

// 0.15 s of 8,000 samples a second: about 300 Hz or 1,500 Hz, and noise.
inline Sound tone(bool high, uint64_t number) {
  Random random(5, number);
  const double hertz = (high ? 1500 : 300) * random.uniform(0.9, 1.1);
  Sound out{.rate = 8000, .samples = {}};
  for (int n = 0; n < 1200; ++n)
    out.samples.push_back(
        static_cast<float>(0.4 * std::sin(2 * std::numbers::pi * hertz * n / 8000) + 0.05 * random.normal()));
  return out;
}

// FOLDER/high/….wav and FOLDER/low/….wav, so many of each.
inline void write_tones(const std::string& folder, int each, uint64_t seed = 0) {
  for (const std::string label : {"high", "low"}) {
    std::filesystem::create_directories(folder + "/" + label);
    for (int n = 0; n < each; ++n)
      put_text(folder + "/" + label + "/" + std::to_string(n) + ".wav",
               encode_wav(tone(label == "high", seed + 2 * static_cast<uint64_t>(n) + (label == "high"))));
  }
}

}  // namespace mh
