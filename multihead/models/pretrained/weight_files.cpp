// Reads a folder's weights, whole or in shards.
#include "multihead/models/pretrained/weight_files.h"

#include <simdjson.h>

#include <filesystem>
#include <set>

#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"

namespace mh {

namespace {

namespace dom = simdjson::dom;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

template <class... Args>
void require(bool holds, const std::string& path, fmt::format_string<Args...> form, Args&&... args) {
  if (!holds) fail(ErrorKind::io, "{}: {}", printable_path(path), fmt::format(form, std::forward<Args>(args)...));
}

// A name of a file that lies in the folder itself.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

WeightFiles read_shards(const std::string& folder, const SafetensorsOptions& options) {
  const std::string index = folder + "/" + kIndex;
  const std::map<std::string, std::string> shard_of = read_shard_index(index);
  std::set<std::string> shards;
  for (const auto& [name, shard] : shard_of) shards.insert(shard);
  WeightFiles out;
  for (const std::string& shard : shards) {
    Safetensors file = read_safetensors(folder + "/" + shard, options);
    if (out.tensors.empty()) out.metadata = std::move(file.metadata);
    for (auto& [name, tensor] : file.tensors) {
      const auto said = shard_of.find(name);
      require(said != shard_of.end() && said->second == shard, index, "the tensor {} of {} is {}; expected it there",
              printable(name), printable(shard),
              said == shard_of.end() ? "not in the index" : "in another shard by the index");
      out.tensors.emplace(name, std::move(tensor));
    }
  }
  for (const auto& [name, shard] : shard_of)
    require(out.tensors.count(name) != 0, index, "the shard {} has no tensor {}", printable(shard), printable(name));
  return out;
}

}  // namespace

std::map<std::string, std::string> read_shard_index(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  const std::string text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  dom::parser parser;
  dom::element root;
  const simdjson::error_code error = parser.parse(text).get(root);
  require(!error, path, "not valid JSON: {}", simdjson::error_message(error));
  dom::object fields;
  require(!root["weight_map"].get(fields), path, "has no weight_map; expected an object of shards by tensor");
  std::map<std::string, std::string> out;
  for (const auto [name, value] : fields) {
    std::string_view shard;
    require(!value.get(shard) && is_plain_name(shard), path,
            "the shard of {} is {}; expected the name of a file in the same folder", printable(name),
            printable(simdjson::minify(value)));
    require(out.emplace(name, shard).second, path, "the tensor {} stands twice", printable(name));
  }
  return out;
}

WeightFiles read_weights(const std::string& folder, const SafetensorsOptions& options) {
  if (const std::string whole = folder + "/" + kWhole; is_there(whole)) {
    Safetensors file = read_safetensors(whole, options);
    return {std::move(file.tensors), std::move(file.metadata)};
  }
  if (is_there(folder + "/" + kIndex)) return read_shards(folder, options);
  const bool pickled = is_there(folder + "/pytorch_model.bin") || is_there(folder + "/pytorch_model.bin.index.json");
  fail(ErrorKind::io, "{}: holds no {} and no {}; expected either{}", printable_path(folder), kWhole, kIndex,
       pickled ? "; pytorch_model.bin is read by `multihead convert` alone" : "");
}

}  // namespace mh
