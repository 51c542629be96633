// Files that stand in a folder for each label: FOLDER/cat/1.png.
#pragma once

#include <string>
#include <vector>

namespace mh {

struct LabelledPath {
  std::string path{}, label{};
};

// The files of each subfolder, whose name is their label, ordered by label and name. `endings`, such as ".png", are
// compared without regard to case; none: every file. Hidden files and what is not a plain file are passed over. Throws:
// io where the folder cannot be read; invalid_argument where there is no such file.
std::vector<LabelledPath> read_labelled_folder(const std::string& folder, const std::vector<std::string>& endings = {});

}  // namespace mh
