// Checkpoints: written durably with a hash, read back only when whole.
#include "multihead/io/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/safetensors_bytes.h"

namespace mh {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kEnding = ".safetensors";
constexpr const char* kStep = "multihead.step";
constexpr const char* kState = "multihead.state";

template <class... Args>
void refuse_unless(bool holds, const std::string& path, fmt::format_string<Args...> form, Args&&... args) {
  if (!holds)
    fail(ErrorKind::io, "checkpoint: {}: {}", printable_path(path), fmt::format(form, std::forward<Args>(args)...));
}

std::optional<int64_t> number(std::string_view digits) {
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0) return std::nullopt;
  return value;
}

std::string path_of(const std::string& folder, int64_t step) {
  return (fs::path(folder) / fmt::format("{}{:08}{}", kPrefix, step, kEnding)).string();
}

// (step, path) of every file named as a checkpoint, the highest step first.
std::vector<std::pair<int64_t, std::string>> saved_steps(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kEnding)) continue;
    const std::string digits = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kEnding.size());
    const std::optional<int64_t> step = number(digits);
    if (step && path_of(folder, *step) == at->path().string()) out.emplace_back(*step, at->path().string());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    fail(ErrorKind::io, "cannot list {}: {}", printable_path(folder), error.message());
  std::sort(out.begin(), out.end(), std::greater<>());
  return out;
}

}  // namespace

bool is_checkpoint(const std::map<std::string, std::string>& metadata) { return metadata.contains(kStep); }

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  check(checkpoint.step >= 0, "checkpoint: the step is {}; expected 0 or more", checkpoint.step);
  write_safetensors(path, {.tensors = checkpoint.tensors,
                           .metadata = {{kStep, fmt::format("{}", checkpoint.step)}, {kState, checkpoint.state}}});
}

Checkpoint read_checkpoint(const std::string& path) {
  Safetensors file = detail::view_safetensors(detail::read_file(path), path);
  for (const char* key : {kStep, kState})
    refuse_unless(file.metadata.contains(key), path, "it is not a checkpoint: the metadata lacks {}", key);
  refuse_unless(file.hashed, path, "it is not a checkpoint: the metadata lacks its hash");

  const std::optional<int64_t> step = number(file.metadata.at(kStep));
  refuse_unless(step.has_value(), path, "its step is {}; expected a number", printable(file.metadata.at(kStep)));
  return {.step = *step, .tensors = std::move(file.tensors), .state = std::move(file.metadata.at(kState))};
}

void save_checkpoint(const std::string& folder, const Checkpoint& checkpoint, int keep, int64_t best_step) {
  check(keep >= 1, "checkpoint: keep is {}; expected 1 or more", keep);
  make_folder(folder);
  write_checkpoint(path_of(folder, checkpoint.step), checkpoint);

  int kept = 0;
  std::error_code ignored;  // what cannot be deleted stays
  for (const auto& [step, path] : saved_steps(folder))
    if (step <= checkpoint.step && kept++ >= keep && step != best_step) fs::remove(path, ignored);
  remove_leftovers(folder, kPrefix);
}

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::vector<std::string> out;
  for (auto& [step, path] : saved_steps(folder)) out.push_back(path);
  return out;
}

std::optional<Checkpoint> load_newest_checkpoint(const std::string& folder, std::vector<std::string>* warnings) {
  const std::vector<std::string> paths = list_checkpoints(folder);
  std::string newest_error;
  for (const std::string& path : paths) {
    try {
      return read_checkpoint(path);
    } catch (const Error& error) {
      if (newest_error.empty()) newest_error = error.what();
      if (warnings) warnings->push_back(error.what());
    }
  }
  if (paths.empty()) return std::nullopt;
  fail(ErrorKind::io, "checkpoint: none of the {} in {} is whole; of the newest: {}", paths.size(),
       printable_path(folder), newest_error);
}

}  // namespace mh
