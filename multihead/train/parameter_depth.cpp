// Reads the paths of parameters.
#include "multihead/train/parameter_depth.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace mh::detail {

namespace {

// N of "encoder.layers.N.…", for `stack` "encoder".
std::optional<int64_t> layer_in(std::string_view name, std::string_view stack) {
  constexpr std::string_view kLayers = ".layers.";
  if (!name.starts_with(stack) || !name.substr(stack.size()).starts_with(kLayers)) return {};
  name.remove_prefix(stack.size() + kLayers.size());
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return {};
  return layer;
}

bool is_read_from_the_start(std::string_view name) {
  for (const std::string_view each : {"embedding.", "decoder_embedding.", "target_embedding.", "positions.", "types.",
                                      "patches.", "encoder.relative", "decoder.relative"})
    if (name.starts_with(each)) return true;
  return false;
}

}  // namespace

int64_t parameter_level(std::string_view name, const ModelDepth& depth) {
  if (const auto layer = layer_in(name, "encoder")) return *layer + 1;
  if (const auto layer = layer_in(name, "decoder")) return depth.encoder + *layer + 1;
  if (is_read_from_the_start(name)) return 0;
  if (name.starts_with("encoder.") || name.starts_with("bridge.")) return depth.encoder + 1;
  return depth.layers() + 1;
}

bool is_frozen(std::string_view name, const ModelDepth& depth, int64_t frozen) {
  // What comes after the last layer is above any number of them.
  const ModelDepth endless{.encoder = depth.encoder, .decoder = kAnyLayers};
  return parameter_level(name, endless) <= frozen;
}

ModelDepth depth_of(const ParamStore& store) {
  ModelDepth out;
  for (const auto& param : store.all()) {
    if (const auto layer = layer_in(param->name, "encoder")) out.encoder = std::max(out.encoder, *layer + 1);
    if (const auto layer = layer_in(param->name, "decoder")) out.decoder = std::max(out.decoder, *layer + 1);
  }
  return out;
}

double rate_at_level(int64_t level, const ModelDepth& depth, double decay) {
  return std::pow(decay, static_cast<double>(depth.layers() + 1 - level));
}

}  // namespace mh::detail
