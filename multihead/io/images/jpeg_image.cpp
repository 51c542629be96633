// JPEG by libjpeg. Its errors jump: between setjmp and the jump there is nothing that has a destructor.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>
#include <cstdint>
#include <string>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/images/decoders.h"

namespace mh::detail {

namespace {

struct JpegWork {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf back{};
  bool cut = false;  // data are missing, or damaged so that some were guessed
  char why[JMSG_LENGTH_MAX] = "";
};

void jpeg_failed(j_common_ptr jpeg) {
  auto* work = static_cast<JpegWork*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, work->why);
  std::longjmp(work->back, 1);
}

// Warnings: libjpeg would fill what is missing with grey.
void jpeg_noted(j_common_ptr jpeg, int level) {
  if (level >= 0 || jpeg->err->msg_code == JWRN_EXTRANEOUS_DATA) return;
  auto* work = static_cast<JpegWork*>(jpeg->client_data);
  if (!work->cut) jpeg->err->format_message(jpeg, work->why);
  work->cut = true;
}

void jpeg_silent(j_common_ptr /*jpeg*/) {}

bool read_jpeg_header(JpegWork& work, ImageBytes bytes) {
  if (setjmp(work.back) != 0) return false;
  jpeg_create_decompress(&work.jpeg);
  jpeg_mem_src(&work.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&work.jpeg, TRUE);
  return true;
}

bool read_jpeg_rows(JpegWork& work, uint8_t* to) {
  if (setjmp(work.back) != 0) return false;
  work.jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&work.jpeg);
  while (work.jpeg.output_scanline < work.jpeg.output_height) {
    JSAMPROW row = to + size_t{work.jpeg.output_scanline} * work.jpeg.output_width * 3;
    jpeg_read_scanlines(&work.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&work.jpeg);
  return true;
}

struct JpegReader : JpegWork {
  JpegReader() {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = static_cast<JpegWork*>(this);
    errors.error_exit = jpeg_failed;
    errors.emit_message = jpeg_noted;
    errors.output_message = jpeg_silent;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
};

}  // namespace

Tensor decode_jpeg(ImageBytes bytes, const std::string& name) {
  JpegReader work;
  if (!read_jpeg_header(work, bytes)) refuse_image(name, work.why);
  const int64_t height = work.jpeg.image_height, width = work.jpeg.image_width;
  check_image_size(height, width, name);
  if (work.jpeg.num_components == 4)
    fail(ErrorKind::unsupported, "{}: a JPEG of four inks (CMYK); expected colours or grey", printable_path(name));
  const Tensor out = empty({height, width, 3}, DType::u8);
  if (!read_jpeg_rows(work, out.data<uint8_t>()) || work.cut) refuse_image(name, work.why);
  return out;
}

}  // namespace mh::detail
