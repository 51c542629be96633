// Windows, a Fourier transform of our own, and filters.
#include "multihead/io/sounds/log_mel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"

namespace mh {

namespace {

using Complex = std::complex<double>;

// The discrete Fourier transform of a power of 2 of numbers, in place: bits of the places turned round, then
// butterflies of 2, 4, 8 …
class Fourier {
 public:
  explicit Fourier(size_t size) : turns_(size / 2), places_(size) {
    for (size_t k = 0; k < turns_.size(); ++k)
      turns_[k] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size));
    for (size_t n = 1; n < size; ++n) places_[n] = places_[n / 2] / 2 + (n % 2 == 1 ? size / 2 : 0);
  }

  void operator()(std::vector<Complex>& x) const {
    for (size_t n = 0; n < x.size(); ++n)
      if (n < places_[n]) std::swap(x[n], x[places_[n]]);
    for (size_t half = 1; half < x.size(); half *= 2)
      for (size_t begin = 0; begin < x.size(); begin += 2 * half)
        for (size_t k = 0; k < half; ++k) {
          const Complex odd = x[begin + k + half] * turns_[k * (x.size() / (2 * half))];
          x[begin + k + half] = x[begin + k] - odd;
          x[begin + k] += odd;
        }
  }

 private:
  std::vector<Complex> turns_;
  std::vector<size_t> places_;
};

// Of each frequency k, the share that filter m takes: (mels, bins).
std::vector<std::vector<double>> mel_filters(const SoundPreparation& p, size_t size) {
  const double nyquist = static_cast<double>(p.rate) / 2, top = 2595 * std::log10(1 + nyquist / 700);
  const auto edge = [&](int64_t n) {
    return 700 * (std::pow(10, top * static_cast<double>(n) / static_cast<double>(p.mels + 1) / 2595) - 1);
  };
  std::vector<std::vector<double>> out;
  for (int64_t m = 0; m < p.mels; ++m) {
    const double low = edge(m), middle = edge(m + 1), high = edge(m + 2);
    std::vector<double> shares;
    for (size_t k = 0; k <= size / 2; ++k) {
      const double hertz = static_cast<double>(k) * static_cast<double>(p.rate) / static_cast<double>(size);
      shares.push_back(std::max(0.0, std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle))));
    }
    out.push_back(std::move(shares));
  }
  return out;
}

void normalise_all(std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean) / static_cast<double>(values.size());
  for (double& value : values) value = (value - mean) / (std::sqrt(squares) + 1e-5);
}

int64_t samples_in(double milliseconds, int64_t rate) {
  return std::max<int64_t>(1, std::llround(milliseconds * static_cast<double>(rate) / 1000));
}

}  // namespace

Tensor log_mel(const Sound& sound, const SoundPreparation& p) {
  check(sound.rate == p.rate, "log_mel: recorded with {} samples a second; expected {}", sound.rate, p.rate);
  check(!sound.samples.empty(), "log_mel: the recording is empty; expected samples");
  const int64_t window = samples_in(p.window_ms, p.rate), hop = samples_in(p.hop_ms, p.rate);
  const auto count = static_cast<int64_t>(sound.samples.size());
  const int64_t frames = 1 + std::max<int64_t>(0, count - window) / hop;
  const size_t size = std::bit_ceil(static_cast<size_t>(std::max<int64_t>(2, window)));
  const Fourier fourier(size);
  const std::vector<std::vector<double>> filters = mel_filters(p, size);
  std::vector<double> values;
  std::vector<Complex> x(size);
  for (int64_t t = 0; t < frames; ++t) {
    std::fill(x.begin(), x.end(), Complex());
    for (int64_t i = 0; i < std::min(window, count - t * hop); ++i) {
      const double share =
          0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window));
      x[static_cast<size_t>(i)] = share * double{sound.samples[static_cast<size_t>(t * hop + i)]};
    }
    fourier(x);
    for (const std::vector<double>& filter : filters) {
      double sum = 0;
      for (size_t k = 0; k < filter.size(); ++k) sum += filter[k] * std::norm(x[k]);
      values.push_back(std::log(std::max(1e-10, sum)));
    }
  }
  normalise_all(values);
  const Tensor out = empty({frames, p.mels});
  std::transform(values.begin(), values.end(), out.data<float>(), [](double y) { return static_cast<float>(y); });
  return out;
}

Tensor fitted_frames(const Tensor& log_mel, const SoundPreparation& p) {
  const Tensor out = zeros({1, p.frames, p.mels});
  std::copy_n(log_mel.data<float>(), std::min(log_mel.size(0), p.frames) * p.mels, out.data<float>());
  return out;
}

SoundPreparation read_sound_preparation(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  const char* text = reinterpret_cast<const char*>(file.bytes.data());
  const auto json = nlohmann::json::parse(text, text + file.bytes.size(), nullptr, false);
  if (!json.is_object()) fail(ErrorKind::io, "{}: not a JSON object", printable_path(path));
  const auto number = [&](const char* key, double low, double high) {
    if (!json.contains(key) || !json[key].is_number() ||
        !(json[key].get<double>() >= low && json[key].get<double>() <= high))
      fail(ErrorKind::io, "{}: {} is {}; expected a number from {} to {}", printable_path(path), key,
           json.contains(key) ? printable(json[key].dump()) : printable("missing"), low, high);
    return json[key].get<double>();
  };
  return {.rate = static_cast<int64_t>(number("sample_rate", 1000, 200'000)),
          .window_ms = number("window_ms", 1, 1000),
          .hop_ms = number("hop_ms", 1, 1000),
          .mels = static_cast<int64_t>(number("mels", 1, 1024)),
          .frames = static_cast<int64_t>(number("frames", 1, 65536))};
}

std::string sound_preparation_json(const SoundPreparation& p) {
  return nlohmann::ordered_json{{"sample_rate", p.rate},
                                {"window_ms", p.window_ms},
                                {"hop_ms", p.hop_ms},
                                {"mels", p.mels},
                                {"frames", p.frames}}
             .dump(2) +
         "\n";
}

}  // namespace mh
