// Attention weights that PyTorch saved, in our layer: torch.nn.MultiheadAttention's names are ours. Any file will do
// that holds such a layer, alone or inside a model. To make one:
//
//   import torch, safetensors.torch
//   layer = torch.nn.MultiheadAttention(256, 8, batch_first=True)        # or a whole model
//   safetensors.torch.save_file(layer.state_dict(), "layer.safetensors", metadata={"num_heads": "8"})
//
//   load_pytorch_layer layer.safetensors                 the only layer of the file, heads by its metadata
//   load_pytorch_layer model.safetensors encoder.layers.0.self_attn 4        one of several, with 4 heads
//
// Where the file also holds `input.query` and what PyTorch made of it, `output`, ours is compared with it.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "multihead/multihead.h"

namespace {

// Paths at which an attention layer lies: "" is the file itself.
std::vector<std::string> layers_of(const mh::Safetensors& file) {
  const std::string end = "out_proj.weight";
  std::vector<std::string> paths;
  for (const auto& [name, tensor] : file.tensors)
    if (name == end || name.ends_with("." + end))
      if (!name.starts_with("gradient."))
        paths.push_back(name.substr(0, name.size() - std::min(name.size(), end.size() + 1)));
  return paths;
}

mh::MultiHeadAttentionOptions options_of(const mh::Params& at, const mh::Safetensors& file, int64_t heads) {
  const auto weight = [&](const std::string& name) {
    return file.tensors.at(at.path().empty() ? name : at.path() + "." + name);
  };
  mh::MultiHeadAttentionOptions options{.model = weight("out_proj.weight").size(0), .heads = heads};
  options.bias = at.holds("in_proj_bias");
  if (at.holds("k_proj_weight")) {  // made with kdim, vdim
    options.key_input = weight("k_proj_weight").size(1);
    options.value_input = weight("v_proj_weight").size(1);
  }
  return options;
}

int run(const std::string& path, std::string layer, int64_t heads) {
  const mh::Safetensors file = mh::read_safetensors(path);
  const std::vector<std::string> found = layers_of(file);
  mh::check(!found.empty(), "{}: no tensor is named out_proj.weight; expected a torch.nn.MultiheadAttention", path);
  mh::check(found.size() == 1 || !layer.empty(), "{}: holds {} attention layers; name one, such as {}", path,
            found.size(), found.back());
  if (layer.empty()) layer = found.front();
  if (heads == 0 && file.metadata.contains("num_heads")) heads = std::stoll(file.metadata.at("num_heads"));
  mh::check(heads > 0,
            "{}: its metadata do not say num_heads, and weights of 4 and 8 heads look alike; give the number", path);

  mh::ParamStore store(file.tensors);
  const mh::Params at(store, layer);
  const mh::MultiHeadAttentionOptions options = options_of(at, file, heads);
  const mh::MultiHeadAttention attention(at, options);
  const auto given = [&](const char* name, const mh::Tensor& otherwise) {
    return file.tensors.contains(name) ? file.tensors.at(name) : otherwise;
  };
  const mh::Tensor q = given("input.query", mh::randn({1, 5, options.model}, 1));
  const mh::Tensor k = given("input.key", options.key_input == 0 ? q : mh::randn({1, 5, options.key_input}, 2));
  const mh::Tensor v = given("input.value", options.value_input == 0 ? k : mh::randn({1, 5, options.value_input}, 3));
  mh::Pass pass = mh::Pass::inference();
  const mh::Tensor y = attention(q, k, v, pass);
  std::printf("width %d, %d heads%s: q %s -> y %s\n", int(options.model), int(heads), options.bias ? "" : ", no bias",
              mh::to_string(q.shape()).c_str(), mh::to_string(y.shape()).c_str());
  if (!file.tensors.contains("input.query") || !file.tensors.contains("output")) return 0;
  const mh::Tensor expected = file.tensors.at("output");
  double off = 0;
  for (int64_t i = 0; i < y.count(); ++i)
    off = std::max(off, std::abs(double{y.data<float>()[i]} - double{expected.data<float>()[i]}));
  std::printf("at most %.1e from PyTorch's\n", off);
  return off < 1e-5 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: load_pytorch_layer FILE.safetensors [LAYER [HEADS]]\n");
    return 2;
  }
  try {
    return run(argv[1], argc > 2 ? argv[2] : "", argc > 3 ? std::stoll(argv[3]) : 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
