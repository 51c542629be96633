// One model from several: the mean of their weights.
#include "multihead/train/average.h"

#include <cmath>
#include <cstring>

#include "multihead/base/printable.h"
#include "multihead/io/checkpoint.h"
#include "multihead/models/config_json.h"
#include "multihead/train/config/config.h"
#include "multihead/train/training_state.h"

namespace mh {

namespace {

constexpr std::string_view kModel = "model.";

// The weights of the model in a checkpoint, as a file of the model alone has them.
Safetensors model_of(const Checkpoint& checkpoint, const std::string& path) {
  Safetensors out;
  for (const auto& [name, tensor] : checkpoint.tensors)
    if (name.starts_with(kModel)) out.tensors[name.substr(kModel.size())] = tensor;
  check(!out.tensors.empty(), "average: {} holds no weights of a model; expected tensors named {}…",
        printable_path(path), kModel);
  const detail::TrainingState state = detail::TrainingState::from_json(checkpoint.state, path);
  out.metadata = {{kConfigKey, config_to_json(parse_config(state.config, path).model)}, {"format", "pt"}};
  if (!state.tokenizer.empty()) out.metadata[kTokenizerKey] = state.tokenizer;
  return out;
}

Safetensors read(const std::string& path) {
  Safetensors file = read_safetensors(path);
  return is_checkpoint(file.metadata) ? model_of(read_checkpoint(path), path) : file;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.view().data, b.view().data, static_cast<size_t>(a.count() * size_of(a.dtype()))) == 0;
}

void check_tensor(const std::string& name, const Tensor& a, const Tensor& b, const std::string& where) {
  check(a.dtype() == b.dtype() && a.shape() == b.shape(),
        "average: tensor {} is {} {} in the first and {} {} in {}; expected the same", printable(name),
        mh::name(a.dtype()), a.shape(), mh::name(b.dtype()), b.shape(), where);
  check(is_float(a.dtype()) || same_bytes(a, b),
        "average: tensor {}, of {}, differs between the first and {}; expected the same or floats", printable(name),
        mh::name(a.dtype()), where);
}

void check_alike(const Safetensors& first, const Safetensors& other, const std::string& path) {
  const std::string where = fmt::format("{}", printable_path(path));
  for (const auto& [name, tensor] : first.tensors) {
    const auto found = other.tensors.find(name);
    check(found != other.tensors.end(), "average: {} lacks the tensor {} of the first", where, printable(name));
    check_tensor(name, tensor, found->second, where);
  }
  for (const auto& [name, tensor] : other.tensors)
    check(first.tensors.contains(name), "average: {} holds the tensor {}, which the first lacks", where,
          printable(name));
  const auto config = [](const Safetensors& file) {
    const auto found = file.metadata.find(kConfigKey);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  check(config(first) == config(other), "average: the config of {} differs from that of the first; expected the same",
        where);
}

// The hash of the tokenizer that the files name; empty where none does.
std::string named_tokenizer(const std::vector<Safetensors>& files, const std::vector<std::string>& paths) {
  std::string first, where;
  for (size_t n = 0; n < files.size(); ++n) {
    const auto found = files[n].metadata.find(kTokenizerKey);
    if (found == files[n].metadata.end()) continue;
    check(first.empty() || first == found->second,
          "average: {} and {} were trained with different tokenizers; expected models with the same one",
          printable_path(where), printable_path(paths[n]));
    first = found->second;
    where = paths[n];
  }
  return first;
}

// The files were read from `paths`.
Tensor mean(const std::vector<Safetensors>& files, const std::vector<std::string>& paths, const std::string& name,
            std::optional<DType> stored) {
  const Tensor& first = files.front().tensors.at(name);
  if (!is_float(first.dtype())) return first;
  const Tensor sum = zeros(first.shape(), DType::f64);
  double* sums = sum.data<double>();
  const int64_t count = first.count();
  for (size_t n = 0; n < files.size(); ++n) {
    const Tensor wide = files[n].tensors.at(name).to(DType::f64);
    const double* values = wide.data<double>();
    for (int64_t i = 0; i < count; ++i) {
      check(!std::isnan(values[i]), "average: tensor {} of {} holds a NaN; expected numbers", printable(name),
            printable_path(paths[n]));
      sums[i] += values[i];
    }
  }
  for (int64_t i = 0; i < count; ++i) sums[i] /= static_cast<double>(files.size());
  const Tensor out = sum.to(stored.value_or(first.dtype()));
  const Tensor rounded = out.to(DType::f64);
  for (int64_t i = 0; i < count; ++i)
    check(!std::isfinite(sums[i]) || std::isfinite(rounded.data<double>()[i]),
          "average: tensor {} holds {}, which {} cannot hold; expected another type to store it", printable(name),
          sums[i], mh::name(out.dtype()));
  return out;
}

}  // namespace

Safetensors average_weights(const std::vector<std::string>& paths, const AverageOptions& options) {
  check(!paths.empty(), "average: no files; expected at least 1");
  check(!options.stored || is_float(*options.stored), "average: floats stored as {}; expected f32, bf16 or f16",
        name(*options.stored));
  std::vector<Safetensors> files;
  for (const std::string& path : paths) {
    files.push_back(read(path));
    check_alike(files.front(), files.back(), path);
    if (options.tokenizer) check_tokenizer(*options.tokenizer, path, files.back().metadata);
  }
  const std::string tokenizer =
      options.tokenizer ? tokenizer_hash(options.tokenizer->tokenizer) : named_tokenizer(files, paths);
  Safetensors out{.tensors = files.front().tensors, .metadata = files.front().metadata};
  for (const Safetensors& file : files) {
    std::erase_if(out.metadata, [&](const auto& entry) {
      const auto found = file.metadata.find(entry.first);
      return found == file.metadata.end() || found->second != entry.second;
    });
  }
  if (!tokenizer.empty()) out.metadata[kTokenizerKey] = tokenizer;
  for (auto& [name, tensor] : out.tensors) tensor = mean(files, paths, name, options.stored);
  return out;
}

}  // namespace mh
