// preprocessor_config.json, and what it asks for.
#include "multihead/io/images/preparation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"
#include "multihead/io/images/image_file.h"

namespace mh {

namespace {

using Json = nlohmann::ordered_json;

// The values of one file, by key.
class PreparationFile {
 public:
  explicit PreparationFile(const std::string& path) : path_(path) {
    const detail::FileBytes file = detail::read_file(path);
    json_ = Json::parse(reinterpret_cast<const char*>(file.bytes.data()),
                        reinterpret_cast<const char*>(file.bytes.data()) + file.bytes.size(), nullptr, false);
    if (!json_.is_object()) fail(ErrorKind::io, "{}: not a JSON object", printable_path(path));
  }

  bool has(const std::string& key) const { return json_.contains(key) && !json_[key].is_null(); }
  const Json& operator[](const std::string& key) const { return json_.at(key); }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, ErrorKind kind = ErrorKind::io) const {
    fail(kind, "{}: {} is {}; expected {}", printable_path(path_), key, printable(json_.at(key).dump()), expected);
  }

  bool flag(const std::string& key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!json_[key].is_boolean()) refuse(key, "true or false");
    return json_[key].get<bool>();
  }
  // A side in pixels: json_[key], or json_[key][inner].
  int64_t side(const std::string& key, const char* inner = nullptr) const {
    const Json& at = inner == nullptr ? json_.at(key) : json_.at(key).at(inner);
    if (!at.is_number_integer() || at.get<int64_t>() < 1 || at.get<int64_t>() > kMostImageSide)
      refuse(key, fmt::format("sides from 1 to {}", kMostImageSide));
    return at.get<int64_t>();
  }
  std::string word(const std::string& key) const {
    return has(key) && json_[key].is_string() ? json_[key].get<std::string>() : "";
  }
  std::vector<float> colours(const std::string& key, bool positive) const {
    std::vector<float> out;
    if (json_[key].is_array())
      for (const Json& each : json_[key])
        if (each.is_number()) out.push_back(each.get<float>());
    const bool fits = (out.size() == 1 || out.size() == 3) && out.size() == json_[key].size();
    if (!fits || (positive && std::any_of(out.begin(), out.end(), [](float x) { return !(x > 0); })))
      refuse(key, positive ? "1 or 3 numbers above 0" : "1 or 3 numbers");
    return out;
  }

 private:
  std::string path_;
  Json json_;
};

void take_size(const PreparationFile& file, bool by_edge, ImagePreparation& out) {
  const Json& size = file["size"];
  if (size.is_number()) {
    if (by_edge)
      out.shortest_edge = file.side("size");
    else
      out.height = out.width = file.side("size");
  } else if (size.is_object() && size.contains("height") && size.contains("width")) {
    out.height = file.side("size", "height");
    out.width = file.side("size", "width");
  } else if (size.is_object() && size.contains("shortest_edge") && size.size() == 1) {
    out.shortest_edge = file.side("size", "shortest_edge");
  } else {
    file.refuse("size", "a number, {height, width} or {shortest_edge}", ErrorKind::unsupported);
  }
}

void take_crop(const PreparationFile& file, ImagePreparation& out) {
  const Json& size = file["crop_size"];
  if (size.is_number()) {
    out.crop_height = out.crop_width = file.side("crop_size");
  } else if (size.is_object() && size.contains("height") && size.contains("width")) {
    out.crop_height = file.side("crop_size", "height");
    out.crop_width = file.side("crop_size", "width");
  } else {
    file.refuse("crop_size", "a number or {height, width}", ErrorKind::unsupported);
  }
}

Tensor grey(const Tensor& image) {
  const Tensor out = empty({image.size(0), image.size(1), 1}, DType::u8);
  const uint8_t* rgb = image.data<uint8_t>();
  for (int64_t n = 0; n < out.count(); ++n, rgb += 3)
    out.data<uint8_t>()[n] = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
  return out;
}

Tensor cropped(const Tensor& image, int64_t height, int64_t width) {
  const Tensor out = zeros({height, width, image.size(2)}, DType::u8);
  const int64_t channels = image.size(2);
  // Where the picture's first row and column come to lie: transformers rounds down when it cuts and up when it pads.
  const int64_t cut_y = image.size(0) - height, cut_x = image.size(1) - width;
  const auto begin = [](int64_t cut) { return cut >= 0 ? cut / 2 : -((1 - cut) / 2); };
  const int64_t top = begin(cut_y), left = begin(cut_x);
  for (int64_t y = std::max<int64_t>(0, -top); y < std::min(height, image.size(0) - top); ++y) {
    const int64_t first = std::max<int64_t>(0, -left), end = std::min(width, image.size(1) - left);
    std::copy_n(image.data<uint8_t>() + ((y + top) * image.size(1) + first + left) * channels, (end - first) * channels,
                out.data<uint8_t>() + (y * width + first) * channels);
  }
  return out;
}

}  // namespace

ImagePreparation read_preparation(const std::string& path) {
  const PreparationFile file(path);
  std::string type = file.word("image_processor_type");
  if (type.empty()) type = file.word("feature_extractor_type");
  const bool clip = type.starts_with("CLIP"), deit = type.starts_with("DeiT");
  ImagePreparation out;
  if (file.flag("do_resize", true)) {
    if (file.has("size"))
      take_size(file, clip, out);
    else if (clip)
      out.shortest_edge = 224;
    else
      out.height = out.width = deit ? 256 : 224;
  }
  if (clip || deit) out.resample = Resample::bicubic;
  if (file.has("resample")) {
    const Json& number = file["resample"];
    if (!number.is_number_integer() || number.get<int64_t>() < 0 || number.get<int64_t>() > 3)
      file.refuse("resample", "0 (nearest), 1 (Lanczos), 2 (bilinear) or 3 (bicubic)", ErrorKind::unsupported);
    out.resample = static_cast<Resample>(number.get<int64_t>());
  }
  if (file.flag("do_center_crop", clip || deit)) {
    out.crop_height = out.crop_width = 224;
    if (file.has("crop_size")) take_crop(file, out);
  }
  if (file.has("rescale_factor")) {
    if (!file["rescale_factor"].is_number()) file.refuse("rescale_factor", "a number");
    out.rescale = file["rescale_factor"].get<double>();
  }
  if (!file.flag("do_rescale", true)) out.rescale = 1;
  if (file.has("image_mean")) out.mean = file.colours("image_mean", false);
  if (file.has("image_std")) out.deviation = file.colours("image_std", true);
  if (!file.flag("do_normalize", true)) {
    std::fill(out.mean.begin(), out.mean.end(), 0.0F);
    out.deviation = std::vector<float>(out.mean.size(), 1.0F);
  }
  if (out.mean.size() != out.deviation.size())
    fail(ErrorKind::io, "{}: image_mean has {} numbers, image_std {}; expected the same number", printable_path(path),
         out.mean.size(), out.deviation.size());
  return out;
}

std::string preparation_json(const ImagePreparation& p) {
  const auto decimal = [](const std::vector<float>& values) {
    std::vector<double> out;
    for (const float value : values) out.push_back(std::stod(fmt::format("{}", value)));
    return out;
  };
  const bool resizes = p.height > 0 || p.shortest_edge > 0;
  Json out{{"image_processor_type", "ViTImageProcessor"}, {"do_resize", resizes}};
  if (p.shortest_edge > 0)
    out["size"] = {{"shortest_edge", p.shortest_edge}};
  else if (resizes)
    out["size"] = {{"height", p.height}, {"width", p.width}};
  out["resample"] = static_cast<int>(p.resample);
  if (p.crop_height > 0) {
    out["do_center_crop"] = true;
    out["crop_size"] = {{"height", p.crop_height}, {"width", p.crop_width}};
  }
  out.update(Json{{"do_rescale", true},
                  {"rescale_factor", p.rescale},
                  {"do_normalize", true},
                  {"image_mean", decimal(p.mean)},
                  {"image_std", decimal(p.deviation)}});
  return out.dump(2) + "\n";
}

Tensor fitted(const Tensor& image, const ImagePreparation& p) {
  check(image && image.dtype() == DType::u8 && image.rank() == 3 && (image.size(2) == 3 || image.size(2) == 1),
        "fitted: the picture is {} {}; expected u8 (height, width, 3) or (height, width, 1)",
        image ? name(image.dtype()) : "missing", image ? image.shape() : Shape{});
  check(image.size(2) == 3 || p.channels() == 1, "fitted: a grey picture, and the model reads {} channels",
        p.channels());
  Tensor out = image.contiguous();
  if (p.channels() == 1 && out.size(2) == 3) out = grey(out);
  if (p.shortest_edge > 0) {
    const int64_t least = std::min(out.size(0), out.size(1));
    out = resize(out, p.shortest_edge * out.size(0) / least, p.shortest_edge * out.size(1) / least, p.resample);
  } else if (p.height > 0) {
    out = resize(out, p.height, p.width, p.resample);
  }
  return p.crop_height > 0 ? cropped(out, p.crop_height, p.crop_width) : out;
}

Tensor normalised(const Tensor& fitted, const ImagePreparation& p) {
  const int64_t height = fitted.size(0), width = fitted.size(1), channels = fitted.size(2);
  check(channels == p.channels(), "normalised: a picture of {} channels; expected {}", channels, p.channels());
  const Tensor out = empty({channels, height, width});
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = p.mean[static_cast<size_t>(c)], deviation = p.deviation[static_cast<size_t>(c)];
    float values[256];
    for (int n = 0; n < 256; ++n) values[n] = (static_cast<float>(n * p.rescale) - mean) / deviation;
    const uint8_t* from = fitted.data<uint8_t>() + c;
    float* to = out.data<float>() + c * height * width;
    for (int64_t n = 0; n < height * width; ++n, from += channels) to[n] = values[*from];
  }
  return out;
}

}  // namespace mh
