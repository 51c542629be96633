// PNG by libpng. Its errors jump: between setjmp and the jump there is nothing that has a destructor.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/io/images/decoders.h"
#include "multihead/io/images/image_file.h"

namespace mh {

namespace {

struct PngWork {
  png_structp png = nullptr;
  png_infop info = nullptr;
  detail::ImageBytes left{};
  std::string* written = nullptr;
  char why[160] = "";
};

void png_failed(png_structp png, png_const_charp why) {
  auto* work = static_cast<PngWork*>(png_get_error_ptr(png));
  std::strncpy(work->why, why, sizeof work->why - 1);
  longjmp(png_jmpbuf(png), 1);
}

void png_warned(png_structp /*png*/, png_const_charp /*why*/) {}

void take_bytes(png_structp png, png_bytep to, size_t count) {
  auto* work = static_cast<PngWork*>(png_get_io_ptr(png));
  if (count > work->left.size()) png_error(png, "it ends early");
  std::memcpy(to, work->left.data(), count);
  work->left = work->left.subspan(count);
}

void put_bytes(png_structp png, png_bytep from, size_t count) {
  static_cast<PngWork*>(png_get_io_ptr(png))->written->append(reinterpret_cast<const char*>(from), count);
}

void no_flush(png_structp /*png*/) {}

// To 8 bits of red, green and blue. False where libpng gave up.
bool read_png_header(PngWork& work) {
  if (setjmp(png_jmpbuf(work.png)) != 0) return false;
  png_set_user_limits(work.png, kMostImageSide, kMostImageSide);
  png_set_read_fn(work.png, &work, take_bytes);
  png_read_info(work.png, work.info);
  const int colours = png_get_color_type(work.png, work.info);
  if (colours == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(work.png);
  if (colours == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(work.png);
  if ((colours & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(work.png);
  png_set_strip_16(work.png);
  png_set_strip_alpha(work.png);
  png_set_interlace_handling(work.png);
  png_read_update_info(work.png, work.info);
  return true;
}

bool read_png_rows(PngWork& work, png_bytepp rows) {
  if (setjmp(png_jmpbuf(work.png)) != 0) return false;
  png_read_image(work.png, rows);
  png_read_end(work.png, nullptr);
  return true;
}

bool write_png(PngWork& work, const Tensor& image, png_bytepp rows) {
  if (setjmp(png_jmpbuf(work.png)) != 0) return false;
  png_set_write_fn(work.png, &work, put_bytes, no_flush);
  png_set_IHDR(work.png, work.info, static_cast<png_uint_32>(image.size(1)), static_cast<png_uint_32>(image.size(0)), 8,
               image.size(2) == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(work.png, work.info);
  png_write_image(work.png, rows);
  png_write_end(work.png, nullptr);
  return true;
}

std::vector<png_bytep> png_rows(const Tensor& image) {
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < image.size(0); ++y) rows.push_back(image.data<uint8_t>() + y * image.size(1) * image.size(2));
  return rows;
}

struct PngReader : PngWork {
  explicit PngReader(detail::ImageBytes bytes) {
    left = bytes;
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, static_cast<PngWork*>(this), png_failed, png_warned);
    info = png == nullptr ? nullptr : png_create_info_struct(png);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

struct PngWriter : PngWork {
  explicit PngWriter(std::string& to) {
    written = &to;
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, static_cast<PngWork*>(this), png_failed, png_warned);
    info = png == nullptr ? nullptr : png_create_info_struct(png);
  }
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
};

}  // namespace

namespace detail {

Tensor decode_png(ImageBytes bytes, const std::string& name) {
  PngReader work(bytes);
  if (work.info == nullptr) throw std::bad_alloc();
  if (!read_png_header(work)) refuse_image(name, work.why);
  const int64_t height = png_get_image_height(work.png, work.info), width = png_get_image_width(work.png, work.info);
  check_image_size(height, width, name);
  if (static_cast<int64_t>(png_get_rowbytes(work.png, work.info)) != 3 * width)
    refuse_image(name, "its rows have another length than its header says");
  const Tensor out = empty({height, width, 3}, DType::u8);
  std::vector<png_bytep> rows = png_rows(out);
  if (!read_png_rows(work, rows.data())) refuse_image(name, work.why);
  return out;
}

}  // namespace detail

std::string encode_png(const Tensor& image) {
  check(image && image.dtype() == DType::u8 && image.rank() == 3 && (image.size(2) == 3 || image.size(2) == 1),
        "encode_png: the picture is {} {}; expected u8 (height, width, 3) or (height, width, 1)",
        image ? name(image.dtype()) : "missing", image ? image.shape() : Shape{});
  detail::check_image_size(image.size(0), image.size(1), "encode_png");
  const Tensor dense = image.contiguous();
  std::string out;
  PngWriter work(out);
  if (work.info == nullptr) throw std::bad_alloc();
  std::vector<png_bytep> rows = png_rows(dense);
  if (!write_png(work, dense, rows.data())) fail(ErrorKind::internal, "encode_png: {}", std::string(work.why));
  return out;
}

}  // namespace mh
