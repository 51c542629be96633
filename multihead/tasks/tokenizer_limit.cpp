// Reads the one key of tokenizer_config.json that says how long a text may be.
#include "multihead/tasks/tokenizer_limit.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"

namespace mh {

namespace {
constexpr int64_t kNoLimit = int64_t{1} << 20;
}  // namespace

int64_t tokenizer_limit(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return kNoLimit;
  const detail::FileBytes file = detail::read_file(path);
  const auto* text = reinterpret_cast<const char*>(file.bytes.data());
  const auto json = nlohmann::json::parse(text, text + file.bytes.size(), nullptr, false);
  if (!json.is_object()) fail(ErrorKind::io, "{}: not a JSON object", printable_path(path));
  const auto at = json.find("model_max_length");
  if (at == json.end() || !at->is_number()) return kNoLimit;
  const double limit = at->get<double>();
  return limit >= 1 && limit < static_cast<double>(kNoLimit) ? static_cast<int64_t>(limit) : kNoLimit;
}

}  // namespace mh
