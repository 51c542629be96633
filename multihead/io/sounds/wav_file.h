// Recordings in WAV files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mh {

inline constexpr int64_t kMostSamples = int64_t{1} << 28;  // of all channels

struct Sound {
  int64_t rate = 0;            // samples a second
  std::vector<float> samples;  // in -1 … 1 where the file holds whole numbers; of several channels the mean
};

// RIFF WAVE with chunks in any order: PCM of 8 (unsigned), 16, 24 and 32 bits, divided by 2^(bits - 1), and floats of
// 32 and 64 bits, also as WAVE_FORMAT_EXTENSIBLE says them. Throws: io, naming the file, where it cannot be read, is no
// WAV, ends early, or says something impossible; unsupported for another coding.
Sound read_wav(const std::string& path);
// The same of bytes in memory; `name` stands in the sentences.
Sound decode_wav(std::span<const std::byte> bytes, const std::string& name);

// The bytes of a WAV file of 16 bits and one channel; samples beyond ±1 are cut to them.
std::string encode_wav(const Sound& sound);

}  // namespace mh
