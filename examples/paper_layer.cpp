// The layer of "Attention is all you need" with its d_k and d_v free: here 8 heads of d_k = 24 and d_v = 80 over a
// model of 512, 6 decoder rows looking at 4 encoder rows of another width.
#include <cstdio>

#include "multihead/multihead.h"

int main() {
  mh::ParamStore store;
  const mh::MultiHeadAttention layer(
      mh::Params(store),
      {.model = 512, .heads = 8, .key_width = 24, .value_width = 80, .key_input = 384, .value_input = 384});
  const mh::Tensor decoder = mh::randn({2, 6, 512}, 1), encoder = mh::randn({2, 4, 384}, 2);
  mh::Pass pass = mh::Pass::inference();
  const mh::Tensor y = layer(decoder, encoder, encoder, pass);
  for (const auto& param : store.all())
    std::printf("%-16s %s\n", param->name.c_str(), mh::to_string(param->value.shape()).c_str());
  std::printf("%lld parameters; y is %s\n", static_cast<long long>(store.count()), mh::to_string(y.shape()).c_str());
  return y.size(2) == 512 ? 0 : 1;
}
