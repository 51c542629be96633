// The examples of a classifier of pixels: files or arrays, each with its label.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/tasks/data/labels.h"
#include "multihead/tasks/pixels/pixel_form.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

struct PixelExample {
  Tensor kept{};  // as PixelForm::read has it; empty: there are too many to keep, and the file is read again
  std::string path{}, label{}, where{};
};

struct PixelExamples {
  std::string name{};
  std::vector<PixelExample> rows{};
  std::vector<std::string> report{};  // a sentence for every rule that skipped something

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
  Tensor pixels(const PixelForm& form, int64_t n, Random* random) const;
  // The number of each label. Throws: as Labels::require.
  std::vector<int32_t> classes(const Labels& labels) const;
  Labels labels() const;  // Throws: invalid_argument where there are fewer than two
  // Takes `count` examples out. Throws: as detail::held_out.
  PixelExamples hold_out(int64_t count);
  // A hash of what is kept, of the labels and of the names of files.
  std::string digest() const;
};

// The examples of files, those that cannot be read counted as broken. Throws: as read_labelled_files and
// BrokenRows::add; invalid_argument where none is left.
PixelExamples read_pixel_files(const std::string& path, const DataConfig& data, const PixelForm& form);

// Pictures (N, height, width) or (N, height, width, 3) of u8, as they are, and N labels, whole numbers, in IDX files.
// Throws: as read_idx; io where they are others.
PixelExamples read_idx_images(const std::string& images, const std::string& labels);

}  // namespace mh
