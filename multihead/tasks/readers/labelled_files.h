// Files with a label each: a folder for every label, or a table of files and labels.
#pragma once

#include <string>
#include <vector>

#include "multihead/tasks/task_setup.h"

namespace mh {

struct LabelledFile {
  std::string path{}, label{};
  int64_t line = 0;  // of the table; of a folder, which file of it, from 1
};

struct LabelledFiles {
  std::string name{};  // of the folder or table
  bool is_table = false;
  std::vector<LabelledFile> rows{};
  std::vector<std::string> report{};  // a sentence for every rule that skipped something

  // "sounds.tsv:7", or the file's own name
  std::string where(size_t row) const;
};

// `path` is a folder, as read_labelled_folder has it; or a table whose columns data.text and data.label hold a file,
// seen from the table's folder, and its label. Throws: as read_labelled_folder and TableFile; invalid_argument where no
// row is left.
LabelledFiles read_labelled_files(const std::string& path, const DataConfig& data,
                                  const std::vector<std::string>& endings);

}  // namespace mh
