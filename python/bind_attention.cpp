// multihead.attention, merge, explain: the call itself, with the GIL released while the kernels run.
#include <nanobind/stl/string.h>

#include "multihead/ops/attention/attention.h"
#include "python/bindings.h"
#include "python/cache_object.h"
#include "python/docstrings.h"
#include "python/lost_gradients.h"
#include "python/options.h"
#include "python/results.h"

namespace mh::python {

using namespace nb::literals;

namespace {

nb::object attend_cache(const Array& q, const CacheObject& cache, const OptionArguments& given, bool return_lse) {
  const CallOptions options("attention", given, q);
  AttentionResult result;
  {
    nb::gil_scoped_release released;
    result = cache.attend(q.tensor(), options.value);
  }
  nb::object o = to_array(q, result.o);
  if (!return_lse) return o;
  return nb::make_tuple(o, to_array(q, result.lse));
}

nb::object attend(nb::handle q_object, nb::handle k_object, nb::handle v_object, nb::handle mask, nb::handle bias,
                  nb::handle scale, nb::handle similarity, double softcap, double dropout, nb::handle seed,
                  nb::handle sink, bool return_lse, nb::handle out, nb::handle cu_seqlens_q, nb::handle cu_seqlens_k,
                  nb::handle score_mix) {
  constexpr std::string_view op = "attention";
  if (on_gpu(q_object)) {
    return nb::module_::import_("multihead.torch._gpu")
        .attr("attention")(q_object, k_object, v_object, "mask"_a = mask, "bias"_a = bias, "scale"_a = scale,
                           "similarity"_a = similarity, "softcap"_a = softcap, "dropout"_a = dropout, "seed"_a = seed,
                           "sink"_a = sink, "return_lse"_a = return_lse, "out"_a = out, "cu_seqlens_q"_a = cu_seqlens_q,
                           "cu_seqlens_k"_a = cu_seqlens_k, "score_mix"_a = score_mix);
  }
  const OptionArguments given{mask,      bias,         scale,        similarity, seed,   sink,
                              score_mix, cu_seqlens_q, cu_seqlens_k, softcap,    dropout};
  refuse_recording(op, q_object);
  const Array q({op, "q"}, q_object);
  refuse_gradient({op, "q"}, q_object);
  CacheObject* cache = nullptr;
  if (v_object.is_none() && nb::try_cast(k_object, cache) && cache) {
    check(out.is_none(), "attention: out is given together with a KVCache; expected a result of its own");
    return attend_cache(q, *cache, given, return_lse);
  }
  const Array k({op, "k"}, k_object), v({op, "v"}, v_object);
  refuse_gradient({op, "k"}, k_object);
  refuse_gradient({op, "v"}, v_object);
  const CallOptions options(op, given, q);

  Results results(op, q, output_shape(q.tensor(), v.tensor().rank() > 0 ? v.tensor().size(-1) : 0), out);
  if (return_lse) results.want_lse(q, lse_shape(q.tensor()));
  {
    const AttentionResult tensors = results.tensors();
    nb::gil_scoped_release released;
    attention_into(tensors, q.tensor(), k.tensor(), v.tensor(), options.value);
  }
  nb::object o = results.release_o();
  if (!return_lse) return o;
  return nb::make_tuple(o, results.release_lse());
}

nb::object merge_parts(const nb::sequence& pairs) {
  std::vector<std::unique_ptr<Array>> arrays;
  std::vector<AttentionResult> parts;
  for (const nb::handle pair : pairs) {
    check(PySequence_Check(pair.ptr()) && nb::len(pair) == 2, "merge: a part is not a pair; expected (o, lse)");
    for (const int which : {0, 1}) {
      const Site site{"merge", which == 0 ? "o" : "lse"};
      const nb::object each = pair[which];
      refuse_recording(site.op, each);
      arrays.push_back(std::make_unique<Array>(site, each, Access::read, Life::kept));
      refuse_gradient(site, each);
    }
    parts.push_back({arrays[arrays.size() - 2]->tensor(), arrays.back()->tensor()});
  }
  AttentionResult joined;
  {
    nb::gil_scoped_release released;
    joined = merge(parts);
  }
  const nb::object first = pairs[0][0];
  const Array like({"merge", "o"}, first);
  return nb::make_tuple(to_array(like, joined.o), to_array(like, joined.lse));
}

Explanation explain_call(nb::handle q_object, nb::handle k_object, nb::handle v_object, const nb::kwargs& given) {
  const Array q({"explain", "q"}, q_object);
  const CallOptions options("explain", option_arguments("explain", given), q);
  CacheObject* cache = nullptr;
  if (v_object.is_none() && nb::try_cast(k_object, cache) && cache) return cache->explain(q.tensor(), options.value);
  const Array k({"explain", "k"}, k_object), v({"explain", "v"}, v_object);
  return explain(q.tensor(), k.tensor(), v.tensor(), options.value);
}

void bind_explanation(nb::module_& m) {
  nb::class_<Explanation>(m, "Explanation", docs::kExplanation)
      .def_ro("kernel", &Explanation::kernel)
      .def_ro("rung", &Explanation::rung)
      .def_ro("why", &Explanation::why)
      .def_ro("composed", &Explanation::composed)
      .def_ro("flops", &Explanation::flops)
      .def_ro("bytes", &Explanation::bytes)
      .def_ro("scratch", &Explanation::scratch)
      .def("__repr__", &Explanation::text);
}

}  // namespace

void bind_attention(nb::module_& m) {
  const nb::object none = nb::none();
  m.def("attention", attend, "q"_a, "k"_a, "v"_a.none() = none, nb::kw_only(), "mask"_a.none() = none,
        "bias"_a.none() = none, "scale"_a.none() = none, "similarity"_a.none() = none, "softcap"_a = 0.0,
        "dropout"_a = 0.0, "seed"_a.none() = none, "sink"_a.none() = none, "return_lse"_a = false,
        "out"_a.none() = none, "cu_seqlens_q"_a.none() = none, "cu_seqlens_k"_a.none() = none,
        "score_mix"_a.none() = none, docs::kAttention);
  m.def("merge", merge_parts, "parts"_a, docs::kMerge);
  bind_explanation(m);
  m.def("explain", explain_call, "q"_a, "k"_a, "v"_a.none() = none, "options"_a, docs::kExplain);
}

}  // namespace mh::python
