// Reading examples, and keeping them where there is room.
#include "multihead/tasks/pixels/pixel_examples.h"

#include <algorithm>
#include <optional>
#include <span>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/base/printable.h"
#include "multihead/io/array_file.h"
#include "multihead/io/hash.h"
#include "multihead/tasks/data/hold_out.h"
#include "multihead/tasks/readers/broken_rows.h"
#include "multihead/tasks/readers/labelled_files.h"

namespace mh {

namespace {

constexpr int64_t kMostKept = int64_t{1} << 30;  // bytes
constexpr int64_t kReadTogether = 256;           // files between two looks at how much is kept

std::span<const std::byte> bytes_of_tensor(const Tensor& x) {
  return {static_cast<const std::byte*>(x.view().data), static_cast<size_t>(x.count() * size_of(x.dtype()))};
}

struct FileRead {
  Tensor kept{};
  std::optional<Error> refusal{};
};

FileRead read_one(const PixelForm& form, const std::string& path) {
  try {
    return {.kept = form.read(path)};
  } catch (const Error& error) {
    return {.refusal = error};
  }
}

}  // namespace

Tensor PixelExamples::pixels(const PixelForm& form, int64_t n, Random* random) const {
  const PixelExample& row = rows[static_cast<size_t>(n)];
  return form.pixels(row.kept ? row.kept : form.read(row.path), random);
}

std::vector<int32_t> PixelExamples::classes(const Labels& labels) const {
  std::vector<int32_t> out;
  for (const PixelExample& row : rows) out.push_back(labels.require(row.label, row.where));
  return out;
}

Labels PixelExamples::labels() const {
  std::vector<std::string> names;
  for (const PixelExample& row : rows) names.push_back(row.label);
  Labels out(std::move(names));
  check(out.size() >= 2, "{}: every example has the label '{}'; expected two labels or more", printable_path(name),
        out.name(0));
  return out;
}

PixelExamples PixelExamples::hold_out(int64_t count) {
  std::vector<std::string_view> names;
  for (const PixelExample& row : rows) names.push_back(row.where);
  const std::vector<bool> goes = detail::held_out(names, count, name, "examples");
  PixelExamples out{.name = name};
  std::vector<PixelExample> stays;
  for (size_t n = 0; n < rows.size(); ++n) (goes[n] ? out.rows : stays).push_back(std::move(rows[n]));
  rows = std::move(stays);
  return out;
}

std::string PixelExamples::digest() const {
  detail::Hash hash;
  for (const PixelExample& row : rows) {
    if (row.kept) hash.add(bytes_of_tensor(row.kept));
    if (!row.kept) hash.add(std::as_bytes(std::span(row.path)));
    hash.add(std::as_bytes(std::span(row.label)));
  }
  return hash.digits();
}

PixelExamples read_pixel_files(const std::string& path, const DataConfig& data, const PixelForm& form) {
  const LabelledFiles files = read_labelled_files(path, data, form.endings());
  PixelExamples out{.name = path, .report = files.report};
  BrokenRows broken(path, data.max_broken);
  const auto count = static_cast<int64_t>(files.rows.size());
  int64_t kept = 0;
  for (int64_t begin = 0; begin < count; begin += kReadTogether) {
    std::vector<FileRead> read(static_cast<size_t>(std::min(kReadTogether, count - begin)));
    parallel_for(static_cast<int64_t>(read.size()), [&](int64_t n) {
      read[static_cast<size_t>(n)] = read_one(form, files.rows[static_cast<size_t>(begin + n)].path);
    });
    for (size_t n = 0; n < read.size(); ++n) {
      const size_t at = static_cast<size_t>(begin) + n;
      const LabelledFile& file = files.rows[at];
      if (read[n].refusal) {
        broken.add(file.line, read[n].refusal->what());
        continue;
      }
      kept += read[n].kept.count() * size_of(read[n].kept.dtype());
      out.rows.push_back({.kept = kept <= kMostKept ? read[n].kept : Tensor(),
                          .path = file.path,
                          .label = file.label,
                          .where = files.where(at)});
    }
  }
  for (const std::string& sentence : broken.sentences(count)) out.report.push_back(sentence);
  check(!out.rows.empty(), "{}: none of its {} {} can be read; {}", printable_path(path), count, form.examples(),
        fmt::join(out.report, "; "));
  return out;
}

PixelExamples read_idx_images(const std::string& images, const std::string& labels) {
  const Tensor pictures = read_idx(images), numbers = read_idx(labels);
  const bool coloured = pictures.rank() == 4 && pictures.size(3) == 3;
  if (pictures.dtype() != DType::u8 || (pictures.rank() != 3 && !coloured) || pictures.count() == 0)
    fail(ErrorKind::io, "{}: {} numbers of {}; expected u8 (pictures, height, width), or those and 3",
         printable_path(images), pictures.shape(), name(pictures.dtype()));
  if (numbers.rank() != 1 || (numbers.dtype() != DType::u8 && numbers.dtype() != DType::i32) ||
      numbers.size(0) != pictures.size(0))
    fail(ErrorKind::io, "{}: {} labels of {}; expected a whole number for each of the {} pictures of {}",
         printable_path(labels), numbers.shape(), name(numbers.dtype()), pictures.size(0), printable_path(images));
  PixelExamples out{.name = images};
  const int64_t height = pictures.size(1), width = pictures.size(2), channels = coloured ? 3 : 1;
  for (int64_t n = 0; n < pictures.size(0); ++n) {
    const Tensor one = empty({height, width, channels}, DType::u8);
    std::copy_n(pictures.data<uint8_t>() + n * one.count(), one.count(), one.data<uint8_t>());
    const int64_t label = numbers.dtype() == DType::u8 ? numbers.data<uint8_t>()[n] : numbers.data<int32_t>()[n];
    out.rows.push_back(
        {.kept = one, .label = std::to_string(label), .where = fmt::format("{}: picture {}", images, n + 1)});
  }
  return out;
}

}  // namespace mh
