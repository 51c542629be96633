// Tells formats apart, and reads PPM.
#include "multihead/io/images/image_file.h"

#include <algorithm>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"
#include "multihead/io/images/decoders.h"

namespace mh {

namespace detail {

void check_image_size(int64_t height, int64_t width, const std::string& name) {
  if (height < 1 || width < 1 || height > kMostImageSide || width > kMostImageSide || height * width > kMostImagePixels)
    fail(ErrorKind::io, "{}: a picture of {} x {} pixels; expected 1 to {} a side and at most {} in all",
         printable_path(name), width, height, kMostImageSide, kMostImagePixels);
}

void refuse_image(const std::string& name, const std::string& why) {
  fail(ErrorKind::io, "{}: the picture is damaged: {}", printable_path(name), why);
}

}  // namespace detail

namespace {

using detail::ImageBytes;

// The numbers in the header of a PPM, with white space and comments between them.
class PpmHeader {
 public:
  PpmHeader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  int64_t number() {
    for (bool comment = false; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (comment || c == '#') {
        comment = c != '\n';
      } else if (!is_space(c)) {
        break;
      }
    }
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = 10 * value + (text_[at_] - '0');
      if (value > 1'000'000) detail::refuse_image(name_, "a number in its header is above a million");
    }
    if (at_ == begin) detail::refuse_image(name_, "its header lacks a number");
    return value;
  }
  // Where the pixels begin, one white space behind the last number.
  size_t end() const {
    if (at_ >= text_.size() || !is_space(text_[at_])) detail::refuse_image(name_, "it ends within its header");
    return at_ + 1;
  }

 private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  std::string_view text_;
  const std::string& name_;
  size_t at_ = 2;
};

Tensor decode_ppm(ImageBytes bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  PpmHeader header(text, name);
  const int64_t width = header.number(), height = header.number(), most = header.number();
  detail::check_image_size(height, width, name);
  if (most < 1 || most > 65535) detail::refuse_image(name, fmt::format("its largest value is {}", most));
  const int64_t channels = text[1] == '6' ? 3 : 1, each = most > 255 ? 2 : 1, count = height * width * channels;
  const ImageBytes pixels = bytes.subspan(header.end());
  if (static_cast<int64_t>(pixels.size()) < count * each)
    detail::refuse_image(name, fmt::format("it has {} bytes of pixels; expected {}", pixels.size(), count * each));
  const Tensor out = empty({height, width, 3}, DType::u8);
  uint8_t* to = out.data<uint8_t>();
  for (int64_t n = 0; n < count; ++n) {
    int64_t value = 0;
    for (int64_t b = 0; b < each; ++b)
      value = value * 256 + std::to_integer<int64_t>(pixels[static_cast<size_t>(n * each + b)]);
    const auto byte = static_cast<uint8_t>((2 * 255 * std::min(value, most) + most) / (2 * most));  // rounded
    to = std::fill_n(to, 3 / channels, byte);
  }
  return out;
}

}  // namespace

Tensor decode_image(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(std::string_view("\x89PNG\r\n\x1A\n", 8))) return detail::decode_png(bytes, name);
  if (text.starts_with("\xFF\xD8\xFF")) return detail::decode_jpeg(bytes, name);
  if (text.starts_with("P6") || text.starts_with("P5")) return decode_ppm(bytes, name);
  fail(ErrorKind::io, "{}: {}; expected PNG, JPEG or PPM", printable_path(name),
       text.empty() ? "an empty file" : "not a picture that is known");
}

Tensor read_image(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  return decode_image(file.bytes, path);
}

}  // namespace mh
