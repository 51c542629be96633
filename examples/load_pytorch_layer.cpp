// Weights that PyTorch saved (safetensors), in our layer: torch.nn.MultiheadAttention's names are ours. The file also
// holds an input and PyTorch's output for it, so that the example can say how near ours is.
#include <cmath>
#include <cstdio>

#include "multihead/multihead.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: load_pytorch_layer FILE.safetensors\n");
    return 2;
  }
  try {
    const mh::Safetensors file = mh::read_safetensors(argv[1]);
    mh::ParamStore store(file.tensors);
    const int64_t width = file.tensors.at("out_proj.weight").size(0);
    const mh::MultiHeadAttention layer(mh::Params(store),
                                       {.model = width, .heads = std::stoll(file.metadata.at("num_heads"))});
    const mh::Tensor x = file.tensors.at("input.query"), expected = file.tensors.at("output");
    mh::Pass pass = mh::Pass::inference();
    const mh::Tensor y = layer(x, x, x, pass);
    double off = 0;
    for (int64_t i = 0; i < y.count(); ++i)
      off = std::max(off, std::abs(double{y.data<float>()[i]} - double{expected.data<float>()[i]}));
    std::printf("x %s -> y %s, at most %.1e from PyTorch's\n", mh::to_string(x.shape()).c_str(),
                mh::to_string(y.shape()).c_str(), off);
    return off < 1e-5 ? 0 : 1;
  } catch (const mh::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
