// Reads modules.json and the folders it names, and computes what they ask for.
#include "multihead/tasks/verbs/sentence_modules.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"
#include "multihead/io/safetensors.h"
#include "multihead/ops/products/linear.h"

namespace mh {

namespace {

using ModulesJson = nlohmann::json;

bool module_file_is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

ModulesJson module_json(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  const auto* text = reinterpret_cast<const char*>(file.bytes.data());
  ModulesJson out = ModulesJson::parse(text, text + file.bytes.size(), nullptr, false);
  if (out.is_discarded()) fail(ErrorKind::io, "{}: not valid JSON", printable_path(path));
  return out;
}

// The value of a key, or `otherwise` where there is none or null. Throws: io where it has another type.
template <class T>
T module_value(const ModulesJson& json, const std::string& path, const char* key, T otherwise) {
  if (!json.is_object()) fail(ErrorKind::io, "{}: not a JSON object", printable_path(path));
  const auto at = json.find(key);
  if (at == json.end() || at->is_null()) return otherwise;
  try {
    return at->get<T>();
  } catch (const ModulesJson::exception&) {
    fail(ErrorKind::io, "{}: '{}' has a value of another type than expected", printable_path(path), key);
  }
}

// A module's folder, which lies in `folder`.
std::string inner_folder(const std::string& folder, const std::string& path, const std::string& name) {
  const std::filesystem::path inner(name);
  const bool leaves = inner.is_absolute() || std::find(inner.begin(), inner.end(), "..") != inner.end() ||
                      name.find('\0') != std::string::npos;
  if (leaves) fail(ErrorKind::io, "{}: the path {} leaves the folder", printable_path(path), printable(name));
  return name.empty() ? folder : folder + "/" + name;
}

struct TokenPoolingName {
  TokenPooling pooling;
  const char *name, *flag;  // as the new form and the old one say it
};
constexpr TokenPoolingName kTokenPoolings[] = {
    {TokenPooling::first, "cls", "pooling_mode_cls_token"},
    {TokenPooling::max, "max", "pooling_mode_max_tokens"},
    {TokenPooling::mean, "mean", "pooling_mode_mean_tokens"},
    {TokenPooling::mean_sqrt_length, "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
    {TokenPooling::weighted_mean, "weightedmean", "pooling_mode_weightedmean_tokens"},
    {TokenPooling::last, "lasttoken", "pooling_mode_lasttoken"}};

TokenPooling pooling_named(const std::string& name, const std::string& path) {
  for (const TokenPoolingName& each : kTokenPoolings)
    if (name == each.name) return each.pooling;
  fail(ErrorKind::unsupported,
       "{}: the pooling mode {} is not known; expected cls, max, mean, mean_sqrt_len_tokens, weightedmean or lasttoken",
       printable_path(path), printable(name));
}

void read_pooling(const std::string& folder, SentenceModules& out) {
  const std::string path = folder + "/config.json";
  const ModulesJson json = module_json(path);
  out.pools_prompt = module_value(json, path, "include_prompt", true);
  out.pooling.clear();
  if (json.contains("pooling_mode")) {
    if (json["pooling_mode"].is_string()) {
      out.pooling = {pooling_named(json["pooling_mode"].get<std::string>(), path)};
    } else {
      for (const std::string& name : module_value(json, path, "pooling_mode", std::vector<std::string>{}))
        out.pooling.push_back(pooling_named(name, path));
    }
  } else {
    for (const TokenPoolingName& each : kTokenPoolings)
      if (module_value(json, path, each.flag, false)) out.pooling.push_back(each.pooling);
  }
  if (out.pooling.empty()) fail(ErrorKind::io, "{}: names no pooling mode", printable_path(path));
}

Activation dense_activation(std::string name, const std::string& path) {
  name = name.substr(name.rfind('.') + 1);
  constexpr std::pair<const char*, Activation> kKnown[] = {
      {"Identity", Activation::none}, {"Tanh", Activation::tanh}, {"ReLU", Activation::relu},
      {"GELU", Activation::gelu},     {"SiLU", Activation::silu}, {"Sigmoid", Activation::sigmoid}};
  for (const auto& [known, activation] : kKnown)
    if (name == known) return activation;
  fail(ErrorKind::unsupported,
       "{}: the activation {} is not known; expected Identity, Tanh, ReLU, GELU, SiLU or Sigmoid", printable_path(path),
       printable(name));
}

DenseModule read_dense(const std::string& folder) {
  const std::string path = folder + "/config.json", weights = folder + "/model.safetensors";
  const ModulesJson json = module_json(path);
  if (module_value(json, path, "use_residual", false))
    fail(ErrorKind::unsupported, "{}: use_residual is true; expected a dense layer without it", printable_path(path));
  const auto in = module_value(json, path, "in_features", int64_t{0}),
             width = module_value(json, path, "out_features", int64_t{0});
  DenseModule out{
      .activation = dense_activation(
          module_value(json, path, "activation_function", std::string("torch.nn.modules.activation.Tanh")), path)};
  NamedTensors tensors = read_safetensors(weights).tensors;
  const auto take = [&](const char* name, const Shape& shape) {
    const auto at = tensors.find(name);
    if (at == tensors.end()) fail(ErrorKind::io, "{}: has no tensor '{}'", printable_path(weights), name);
    if (!(at->second.shape() == shape))
      fail(ErrorKind::io, "{}: '{}' is {}; expected {}, as config.json says", printable_path(weights), name,
           at->second.shape(), shape);
    return at->second.to(DType::f32).contiguous();
  };
  if (in < 1 || width < 1) fail(ErrorKind::io, "{}: in_features and out_features are not sizes", printable_path(path));
  out.weight = take("linear.weight", {width, in});
  if (module_value(json, path, "bias", true)) out.bias = take("linear.bias", {width});
  return out;
}

void read_modules(const std::string& folder, const std::string& path, SentenceModules& out) {
  const ModulesJson modules = module_json(path);
  if (!modules.is_array() || modules.size() < 2)
    fail(ErrorKind::io, "{}: not a list of modules; expected a Transformer and a Pooling at least",
         printable_path(path));
  for (size_t n = 0; n < modules.size(); ++n) {
    std::string type = module_value(modules[n], path, "type", std::string());
    type = type.substr(type.rfind('.') + 1);
    const std::string inner = inner_folder(folder, path, module_value(modules[n], path, "path", std::string()));
    if (n == 0 && type == "Transformer") {
      out.model_folder = inner;
    } else if (n == 1 && type == "Pooling") {
      read_pooling(inner, out);
    } else if (n > 1 && type == "Dense") {
      out.after.emplace_back(read_dense(inner));
    } else if (n > 1 && type == "Normalize") {
      out.after.emplace_back(NormaliseModule{});
    } else {
      fail(ErrorKind::unsupported,
           "{}: module {} is {}; expected a Transformer, then a Pooling, then Dense and Normalize in any order",
           printable_path(path), n, printable(type));
    }
  }
}

void normalise_row(float* row, int64_t width) {
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += double{row[c]} * row[c];
  const double length = std::max(std::sqrt(sum), 1e-12);
  for (int64_t c = 0; c < width; ++c) row[c] = static_cast<float>(row[c] / length);
}

void pool_one(const float* rows, int64_t count, int64_t skipped, int64_t width, TokenPooling pooling, float* out) {
  if (pooling == TokenPooling::first || pooling == TokenPooling::last) {
    const float* row = rows + (pooling == TokenPooling::first ? skipped : count - 1) * width;
    std::copy(row, row + width, out);
    return;
  }
  std::vector<double> sums(static_cast<size_t>(width), pooling == TokenPooling::max ? -INFINITY : 0.0);
  double weights = 0;
  for (int64_t n = skipped; n < count; ++n) {
    const double weight = pooling == TokenPooling::weighted_mean ? static_cast<double>(n + 1) : 1.0;
    weights += weight;
    for (int64_t c = 0; c < width; ++c) {
      double& sum = sums[static_cast<size_t>(c)];
      const double x = rows[n * width + c];
      sum = pooling == TokenPooling::max ? (x > sum || std::isnan(x) ? x : sum) : sum + weight * x;
    }
  }
  const double by = pooling == TokenPooling::max                ? 1
                    : pooling == TokenPooling::mean_sqrt_length ? std::sqrt(weights)
                                                                : weights;
  for (int64_t c = 0; c < width; ++c) out[c] = static_cast<float>(sums[static_cast<size_t>(c)] / by);
}

}  // namespace

SentenceModules read_sentence_modules(const std::string& folder) {
  SentenceModules out;
  out.model_folder = folder;
  const std::string modules = folder + "/modules.json", config = folder + "/config_sentence_transformers.json";
  if (!module_file_is_there(modules)) return out;
  out.named = true;
  read_modules(folder, modules, out);
  if (const std::string path = out.model_folder + "/sentence_bert_config.json"; module_file_is_there(path)) {
    const ModulesJson json = module_json(path);
    out.max_length = module_value(json, path, "max_seq_length", int64_t{0});
    out.lowercase = module_value(json, path, "do_lower_case", false);
  }
  if (module_file_is_there(config)) {
    const ModulesJson json = module_json(config);
    out.prompts = module_value(json, config, "prompts", std::map<std::string, std::string>{});
    out.default_prompt = module_value(json, config, "default_prompt_name", std::string());
    out.similarity = module_value(json, config, "similarity_fn_name", std::string());
    if (!out.default_prompt.empty() && !out.prompts.contains(out.default_prompt))
      fail(ErrorKind::io, "{}: default_prompt_name is {}, which is not among the prompts", printable_path(config),
           printable(out.default_prompt));
  }
  return out;
}

Tensor pool_rows(const Tensor& rows, const Sequences& at, const std::vector<TokenPooling>& pooling, int64_t skipped) {
  const int64_t width = rows.size(1), wide = width * static_cast<int64_t>(pooling.size());
  const Tensor dense = rows.contiguous(), out = empty({at.count(), wide});
  const int32_t* starts = at.starts.data<int32_t>();
  for (int64_t b = 0; b < at.count(); ++b) {
    const int64_t count = starts[b + 1] - starts[b];
    for (size_t n = 0; n < pooling.size(); ++n)
      pool_one(dense.data<float>() + starts[b] * width, count, skipped < count ? skipped : 0, width, pooling[n],
               out.data<float>() + b * wide + static_cast<int64_t>(n) * width);
  }
  return out;
}

Tensor apply_modules(const SentenceModules& modules, Tensor vectors) {
  for (const auto& module : modules.after) {
    if (const auto* dense = std::get_if<DenseModule>(&module)) {
      vectors = linear(vectors, dense->weight, {.bias = dense->bias, .activation = dense->activation});
    } else {
      for (int64_t n = 0; n < vectors.size(0); ++n)
        normalise_row(vectors.data<float>() + n * vectors.size(1), vectors.size(1));
    }
  }
  return vectors;
}

}  // namespace mh
