// multihead.attention_weights and attention_statistics: what a call looked at, after the fact.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "multihead/ops/attention/attention.h"
#include "python/bindings.h"
#include "python/docstrings.h"
#include "python/lost_gradients.h"
#include "python/options.h"
#include "python/results.h"
#include "python/statistics_object.h"

namespace mh::python {

using namespace nb::literals;

namespace {

// Neither has a gradient.
void refuse_watched(std::string_view op, nb::handle q, nb::handle k, nb::handle lse) {
  refuse_recording(op, q);
  refuse_gradient({op, "q"}, q);
  refuse_gradient({op, "k"}, k);
  refuse_gradient({op, "lse"}, lse);
}

using Chosen = std::optional<std::vector<int32_t>>;

std::vector<int32_t> chosen(const char* what, const Chosen& list) {
  check(!list || !list->empty(), "attention_weights: the list of {} is empty; expected at least one, or None for all",
        what);
  return list.value_or(std::vector<int32_t>{});
}

nb::object weights(nb::handle q_object, nb::handle k_object, nb::handle lse_object, const Chosen& heads,
                   const Chosen& rows, const nb::kwargs& given) {
  constexpr std::string_view op = "attention_weights";
  refuse_watched(op, q_object, k_object, lse_object);
  const Array q({op, "q"}, q_object), k({op, "k"}, k_object), lse({op, "lse"}, lse_object);
  const CallOptions options(op, option_arguments(op, given), q);
  const std::vector<int32_t> head_list = chosen("heads", heads), row_list = chosen("rows", rows);
  Tensor p;
  {
    nb::gil_scoped_release released;
    p = attention_weights(q.tensor(), k.tensor(), lse.tensor(), options.value, head_list, row_list);
  }
  return to_array(q, p);
}

// (o, lse, the mean of the weights over heads) of a call, for multihead.torch.
nb::tuple attend_with_mean(nb::handle q_object, nb::handle k_object, nb::handle v_object, nb::handle out,
                           const nb::kwargs& given) {
  constexpr std::string_view op = "attention_mean";
  const Array q({op, "q"}, q_object), k({op, "k"}, k_object), v({op, "v"}, v_object);
  const CallOptions options(op, option_arguments(op, given), q);
  const Tensor &tq = q.tensor(), &tk = k.tensor();
  check(tq.rank() == 4 && tk.rank() == 4 && v.tensor().rank() == 4, "{}: q is {}, k is {}, v is {}; expected four axes",
        op, tq.shape(), tk.shape(), v.tensor().shape());
  Results results(op, q, output_shape(tq, v.tensor().size(3)), out);
  results.want_lse(q, lse_shape(tq));
  Output mean(q, {tq.size(0), tq.size(2), tk.size(2)}, DType::f32);
  {
    const AttentionCall call{tq, tk, v.tensor(), results.tensors()};
    nb::gil_scoped_release released;
    attention_mean_into(mean.tensor(), call, options.value);
  }
  return nb::make_tuple(results.release_o(), results.release_lse(), mean.release());
}

StatisticsObject statistics(nb::handle q_object, nb::handle k_object, nb::handle lse_object, int top,
                            const nb::kwargs& given) {
  constexpr std::string_view op = "attention_statistics";
  refuse_watched(op, q_object, k_object, lse_object);
  const Array q({op, "q"}, q_object), k({op, "k"}, k_object), lse({op, "lse"}, lse_object);
  const CallOptions options(op, option_arguments(op, given), q);
  AttentionStatistics s;
  {
    nb::gil_scoped_release released;
    s = attention_statistics(q.tensor(), k.tensor(), lse.tensor(), options.value, top);
  }
  return {to_array(q, s.entropy), to_array(q, s.top_keys), to_array(q, s.top_weights), to_array(q, s.received),
          to_array(q, s.distance)};
}

}  // namespace

void bind_weights(nb::module_& m) {
  nb::class_<StatisticsObject>(m, "Statistics", docs::kStatistics)
      .def_ro("entropy", &StatisticsObject::entropy)
      .def_ro("top_keys", &StatisticsObject::top_keys)
      .def_ro("top_weights", &StatisticsObject::top_weights)
      .def_ro("received", &StatisticsObject::received)
      .def_ro("distance", &StatisticsObject::distance);
  m.def("attention_weights", weights, "q"_a, "k"_a, "lse"_a, nb::kw_only(), "heads"_a.none() = nb::none(),
        "rows"_a.none() = nb::none(), "options"_a, docs::kWeights);
  m.def("attention_mean", attend_with_mean, "q"_a, "k"_a, "v"_a, nb::kw_only(), "out"_a.none() = nb::none(),
        "options"_a, "(o, lse, mean over heads of the weights, float32 (B, Tq, Tk)) of a call in one pass.");
  m.def("attention_statistics", statistics, "q"_a, "k"_a, "lse"_a, nb::kw_only(), "top"_a = 1, "options"_a,
        docs::kAttentionStatistics);
}

}  // namespace mh::python
