// oneDNN as a peer: attention of its matmul, softmax and matmul, f32, called by attention_peers.py. Written for
// oneDNN 2.
#include <cmath>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>

namespace {

using dnnl::memory;
using Dims = memory::dims;

memory::desc described(const Dims& sizes, const Dims& strides) { return {sizes, memory::data_type::f32, strides}; }

// The causal mask is a primitive of its own: as a post-op of the product it took oneDNN 2.6 to its reference code, 800
// times as slow.
struct Call {
  Call(int64_t heads, int64_t T, int64_t D, bool causal, float* const* arrays)
      : q(described({heads, T, D}, {T * D, D, 1}), cpu, arrays[0]),
        k(described({heads, D, T}, {T * D, 1, D}), cpu, arrays[1]),
        v(described({heads, T, D}, {T * D, D, 1}), cpu, arrays[2]),
        o(described({heads, T, D}, {T * D, D, 1}), cpu, arrays[3]),
        s(described({heads, T, T}, {T * T, T, 1}), cpu),
        mask(described({1, T, T}, {T * T, T, 1}), cpu) {
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(0, {1 / std::sqrt(static_cast<float>(D))});
    if (causal) {
      float* to = static_cast<float*>(mask.get_data_handle());
      for (int64_t n = 0; n < T * T; ++n) to[n] = n % T > n / T ? -std::numeric_limits<float>::infinity() : 0;
      masked = dnnl::binary({{dnnl::algorithm::binary_add, s.get_desc(), mask.get_desc(), s.get_desc()}, cpu});
    }
    scores = dnnl::matmul({{q.get_desc(), k.get_desc(), s.get_desc()}, attributes, cpu});
    softmax = dnnl::softmax_forward({{dnnl::prop_kind::forward_inference, s.get_desc(), 2}, cpu});
    output = dnnl::matmul({{s.get_desc(), v.get_desc(), o.get_desc()}, cpu});
  }

  void run() {
    scores.execute(stream, {{DNNL_ARG_SRC, q}, {DNNL_ARG_WEIGHTS, k}, {DNNL_ARG_DST, s}});
    if (masked) masked.execute(stream, {{DNNL_ARG_SRC_0, s}, {DNNL_ARG_SRC_1, mask}, {DNNL_ARG_DST, s}});
    softmax.execute(stream, {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, s}});
    output.execute(stream, {{DNNL_ARG_SRC, s}, {DNNL_ARG_WEIGHTS, v}, {DNNL_ARG_DST, o}});
    stream.wait();
  }

  dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{cpu};
  memory q, k, v, o, s, mask;
  dnnl::primitive scores, masked, softmax, output;
};

}  // namespace

// arrays: q, k, v, o, each (heads, T, D), kept by the caller as long as the call. Null where oneDNN refuses.
extern "C" void* onednn_make(int64_t heads, int64_t T, int64_t D, int causal, float* const* arrays) try {
  return new Call(heads, T, D, causal != 0, arrays);
} catch (const dnnl::error&) {
  return nullptr;
}
extern "C" void onednn_run(void* call) { static_cast<Call*>(call)->run(); }
extern "C" void onednn_free(void* call) { delete static_cast<Call*>(call); }
