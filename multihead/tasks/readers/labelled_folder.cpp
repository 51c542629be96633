// Walking one level of folders.
#include "multihead/tasks/readers/labelled_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"

namespace mh {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (!at->path().filename().string().starts_with('.')) out.push_back(at->path());
  if (error) fail(ErrorKind::io, "cannot read {}: {}", printable_path(folder.string()), error.message());
  std::sort(out.begin(), out.end());
  return out;
}

bool ends_so(std::string name, const std::vector<std::string>& endings) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return endings.empty() ||
         std::any_of(endings.begin(), endings.end(), [&](const std::string& each) { return name.ends_with(each); });
}

}  // namespace

std::vector<LabelledPath> read_labelled_folder(const std::string& folder, const std::vector<std::string>& endings) {
  std::vector<LabelledPath> out;
  std::error_code ignored;
  for (const fs::path& label : entries(folder)) {
    if (!fs::is_directory(label, ignored)) continue;
    for (const fs::path& file : entries(label))
      if (fs::is_regular_file(file, ignored) && ends_so(file.filename().string(), endings))
        out.push_back({file.string(), label.filename().string()});
  }
  check(!out.empty(), "{}: holds no folder with a file{}; expected FOLDER/LABEL/FILE", printable_path(folder),
        endings.empty() ? "" : fmt::format(" that ends in {}", fmt::join(endings, ", ")));
  return out;
}

}  // namespace mh
