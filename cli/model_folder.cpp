// Looking for the model that comes with the project.
#include "cli/model_folder.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "multihead/base/error.h"

namespace mh::cli {

namespace {

namespace fs = std::filesystem;
constexpr const char* kShipped = "models/en-de";

bool is_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "model.safetensors", ignored);
}

}  // namespace

std::string model_folder(const std::optional<std::string>& named) {
  if (named) {
    check(!named->empty(),
          "MODEL is empty; expected the folder of a model, or nothing for the one that comes with the "
          "project");
    return *named;
  }
  const char* wanted = std::getenv("MULTIHEAD_MODEL");
  if (wanted && *wanted) return wanted;
  if (is_model(kShipped)) return kShipped;
  std::error_code ignored;
  for (fs::path at = fs::read_symlink("/proc/self/exe", ignored).parent_path(); at.has_relative_path();
       at = at.parent_path()) {
    for (const fs::path& folder : {at / kShipped, at / "share/multihead" / kShipped}) {
      if (is_model(folder)) return folder.string();
    }
  }
  fail(ErrorKind::io,
       "no model is named, and {} is neither in this folder nor beside the program; name a model's folder", kShipped);
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ignored;
  const std::set<std::string> endings{".safetensors", ".json", ".txt", ".model", ".spm", ".toml"};
  for (fs::recursive_directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    if (at.depth() > 0) at.disable_recursion_pending();
    if (endings.contains(at->path().extension().string())) out.push_back(at->path().string());
  }
  return out;
}

}  // namespace mh::cli
