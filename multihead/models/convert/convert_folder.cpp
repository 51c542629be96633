// Which files a folder holds, and what becomes of each.
#include "multihead/models/convert/convert_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/file_bytes.h"
#include "multihead/io/safetensors.h"
#include "multihead/io/torch/torch_file.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/models/pretrained/read_folder.h"
#include "multihead/text/tokenizer.h"

namespace mh {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPickled = "pytorch_model.bin";
constexpr const char* kPickledIndex = "pytorch_model.bin.index.json";
constexpr const char* kSafe = "model.safetensors";
constexpr const char* kSafeIndex = "model.safetensors.index.json";
constexpr int kDeepest = 8;

bool holds(const fs::path& folder, const char* name) {
  std::error_code ignored;
  return fs::exists(folder / name, ignored);
}

// A folder's weights, and the files they were read from.
struct ReadWeights {
  Safetensors file;
  std::set<std::string> sources;
  std::map<std::string, std::string> tied;
  std::vector<std::string> left_out;
};

void take(ReadWeights& to, TorchFile from) {
  to.file.tensors.merge(from.tensors);
  to.tied.merge(from.tied);
  to.left_out.insert(to.left_out.end(), from.left_out.begin(), from.left_out.end());
}

ReadWeights read_pickled_shards(const fs::path& folder) {
  ReadWeights out;
  const std::string index = (folder / kPickledIndex).string();
  const std::map<std::string, std::string> shard_of = read_shard_index(index);
  for (const auto& [name, shard] : shard_of) out.sources.insert(shard);
  for (const std::string& shard : std::set<std::string>(out.sources)) {
    TorchFile file = read_torch_file((folder / shard).string());
    for (const auto& [name, said] : shard_of) {
      if (said == shard && file.tensors.count(name) == 0 && file.tied.count(name) == 0)
        fail(ErrorKind::io, "{}: the shard {} has no tensor {}", printable_path(index), printable(shard),
             printable(name));
    }
    for (const auto& [name, tensor] : file.tensors) {
      const auto said = shard_of.find(name);
      if (said == shard_of.end() || said->second != shard)
        fail(ErrorKind::io, "{}: the tensor {} of {} is not there by the index; expected it in one shard",
             printable_path(index), printable(name), printable(shard));
    }
    take(out, std::move(file));
  }
  out.sources.insert(kPickledIndex);
  return out;
}

// Nothing where the folder holds no weights.
std::optional<ReadWeights> weights_of(const fs::path& folder) {
  ReadWeights out;
  if (holds(folder, kSafe) || holds(folder, kSafeIndex)) {
    WeightFiles files = read_weights(folder.string());
    out.file = {std::move(files.tensors), std::move(files.metadata)};
    out.sources = {kSafe, kSafeIndex, kPickled, kPickledIndex};
    if (!holds(folder, kSafe))
      for (const auto& [name, shard] : read_shard_index((folder / kSafeIndex).string())) out.sources.insert(shard);
  } else if (holds(folder, kPickled)) {
    take(out, read_torch_file((folder / kPickled).string()));
    out.sources = {kPickled, kPickledIndex};
  } else if (holds(folder, kPickledIndex)) {
    out = read_pickled_shards(folder);
  } else {
    return {};
  }
  out.file.metadata["format"] = "pt";
  // As the format's own Python package notes it.
  for (const auto& [name, first] : out.tied) out.file.metadata.emplace(name, first);
  return out;
}

// Throws where a finite number is none in the new type.
void store_as(DType stored, NamedTensors& tensors) {
  for (auto& [name, tensor] : tensors) {
    if (!is_float(tensor.dtype()) || tensor.dtype() == stored) continue;
    const Tensor as = tensor.to(stored), now = as.to(DType::f32).contiguous(),
                 before = tensor.to(DType::f64).contiguous();
    for (int64_t n = 0; n < now.count(); ++n)
      check(!std::isinf(now.data<float>()[n]) || std::isinf(before.data<double>()[n]),
            "convert: the tensor {} holds {:g}, which {} does not; expected another type", printable(name),
            before.data<double>()[n], mh::name(stored));
    tensor = as;
  }
}

// The same path whatever links lead to it.
fs::path real(const fs::path& path) {
  std::error_code error;
  const fs::path out = fs::weakly_canonical(fs::absolute(path), error);
  return error ? path : out;
}

class Conversion {
 public:
  Conversion(const std::string& from, const std::string& to, const ConvertOptions& options)
      : from_(from), to_(to), options_(options) {}

  ConvertedFolder run() {
    read(from_, ".", 0);
    const auto root = weights_.find(".");
    if (!holds(from_, "config.json"))
      fail(ErrorKind::io, "{} holds no config.json; expected a folder of Hugging Face's",
           printable_path(from_.string()));
    if (root == weights_.end())
      fail(ErrorKind::io, "{} holds no weights; expected {} or {}, or their indices of shards",
           printable_path(from_.string()), kSafe, kPickled);
    const std::string config = config_text(root->second.file.tensors);
    for (auto& [at, read] : weights_)
      if (options_.stored) store_as(*options_.stored, read.file.tensors);
    copy_files();
    write_tokenizer();
    for (const auto& [at, read] : weights_) write_safetensors((to_ / at / kSafe).string(), read.file);
    write_durably((to_ / "config.json").string(), config);
    describe(root->second);
    return std::move(out_);
  }

 private:
  // Collects weights and files, folder by folder.
  void read(const fs::path& folder, const fs::path& at, int depth) {
    if (depth > kDeepest) return note("{}: lies too deep and is left out", printable_path(folder.string()));
    folders_.push_back(at);
    std::optional<ReadWeights> weights = weights_of(folder);
    std::set<fs::path> entries;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      entries.insert(entry->path());
    if (error) fail(ErrorKind::io, "cannot read {}: {}", printable_path(folder.string()), error.message());
    for (const fs::path& path : entries) {
      const std::string name = path.filename().string();
      std::error_code ignored;
      const fs::file_status status = fs::status(path, ignored);
      if (fs::is_directory(status)) {
        if (!name.starts_with(".") && !fs::is_symlink(fs::symlink_status(path, ignored)))
          read(path, at / name, depth + 1);
      } else if (!fs::is_regular_file(status)) {
        note("{}: is no file and is left out", printable_path(path.string()));
      } else if (!(weights && weights->sources.count(name) != 0) && !(at == "." && name == "config.json")) {
        files_.push_back(at / name);
      }
    }
    if (weights) weights_.emplace(at.string(), std::move(*weights));
  }

  // config.json with model_type and the type of the numbers.
  std::string config_text(const NamedTensors& tensors) {
    const std::string path = (from_ / "config.json").string();
    const detail::FileBytes bytes = detail::read_file(path);
    std::string text(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size());
    auto json = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!json.is_object()) fail(ErrorKind::io, "{}: not a JSON object", printable_path(path));
    const bool named = json.contains("model_type") && json["model_type"].is_string();
    if (!options_.as.empty()) {
      family_of(options_.as);
      check(!named || json["model_type"] == options_.as, "{}: its model_type is {}; expected {}, as was said",
            printable_path(path), printable(json["model_type"].dump()), options_.as);
    }
    if (!named) {
      const std::string family = options_.as.empty() ? guessed_family(tensors) : options_.as;
      if (family.empty())
        note("{}: has no model_type, and its tensors do not tell; --as says it", printable_path(path));
      if (!family.empty() && options_.as.empty())
        note("{}: has no model_type; it is {} by its tensors, and the new config.json says so", printable_path(path),
             family);
      if (!family.empty()) json["model_type"] = family;
    }
    if (options_.stored) {
      const char* name = *options_.stored == DType::f32   ? "float32"
                         : *options_.stored == DType::f16 ? "float16"
                                                          : "bfloat16";
      const bool old = json.contains("torch_dtype");
      if (old) json["torch_dtype"] = name;
      if (!old || json.contains("dtype")) json["dtype"] = name;
    }
    return named && !options_.stored ? text : json.dump(2) + "\n";
  }

  void copy_files() {
    for (const fs::path& folder : folders_) make_folder((to_ / folder).lexically_normal().string());
    for (const fs::path& file : files_) {
      const detail::FileBytes bytes = detail::map_file((from_ / file).string());
      write_durably((to_ / file).string(), {std::span<const std::byte>(bytes.bytes)});
    }
  }

  void write_tokenizer() {
    if (holds(from_, "tokenizer.json")) return;
    try {
      write_durably((to_ / "tokenizer.json").string(), Tokenizer::load(from_.string()).json());
    } catch (const Error& error) {
      note("no tokenizer.json is written: {}", error.what());
    }
  }

  void describe(const ReadWeights& root) {
    for (const auto& [name, tensor] : root.file.tensors) {
      ++out_.tensors;
      out_.bytes += tensor.count() * size_of(tensor.dtype());
    }
    std::vector<std::string> tied;
    for (const auto& [name, first] : root.tied)
      tied.push_back(fmt::format("{} is {}", printable(name), printable(first)));
    if (!tied.empty()) note("written once, as one tensor: {}", fmt::join(tied, ", "));
    for (const std::string& name : root.left_out) note("{} is no tensor and is left out", printable(name));
    try {
      const FolderFacts facts = folder_facts(to_.string());
      out_.description = facts.description();
      out_.verb = facts.verb();
    } catch (const Error& error) {
      note("converted, but not run here: {}", error.what());
    }
  }

  template <class... Args>
  void note(fmt::format_string<Args...> form, Args&&... args) {
    out_.notes.push_back(fmt::format(form, std::forward<Args>(args)...));
  }

  fs::path from_, to_;
  const ConvertOptions& options_;
  std::map<std::string, ReadWeights> weights_;  // by folder below the root
  std::vector<fs::path> folders_, files_;
  ConvertedFolder out_;
};

}  // namespace

void check_new_folder(const std::string& from, const std::string& to) {
  std::error_code ignored;
  if (!fs::is_directory(from, ignored))
    fail(ErrorKind::io, "{} {}; expected a folder with config.json and weights", printable_path(from),
         fs::exists(from, ignored) ? "is a file" : "is not there");
  check(!to.empty(), "convert: the name of the new folder is empty");
  check(!fs::exists(to, ignored) || (fs::is_directory(to, ignored) && fs::is_empty(to, ignored)),
        "convert: {} is there already; expected a new folder, or an empty one", printable_path(to));
  const std::string inner = real(to).string() + "/", outer = real(from).string() + "/";
  check(!inner.starts_with(outer), "convert: {} lies in {}, which is read; expected a folder outside of it",
        printable_path(to), printable_path(from));
  check_writable_folder(to);
}

ConvertedFolder convert_folder(const std::string& from, const std::string& to, const ConvertOptions& options) {
  check_new_folder(from, to);
  return Conversion(from, to, options).run();
}

}  // namespace mh
