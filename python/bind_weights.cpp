// multihead.attention_weights and attention_statistics: what a call looked at, after the fact.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "multihead/ops/attention.h"
#include "python/bindings.h"
#include "python/docstrings.h"
#include "python/options.h"

namespace mh::python {

using namespace nb::literals;

namespace {

struct StatisticsObject {
  nb::object entropy, top_keys, top_weights, received, distance;
};

using Chosen = std::optional<std::vector<int32_t>>;

std::vector<int32_t> chosen(const char* what, const Chosen& list) {
  check(!list || !list->empty(), "attention_weights: the list of {} is empty; expected at least one, or None for all",
        what);
  return list.value_or(std::vector<int32_t>{});
}

nb::object weights(nb::handle q_object, nb::handle k_object, nb::handle lse_object, const Chosen& heads,
                   const Chosen& rows, const nb::kwargs& given) {
  constexpr std::string_view op = "attention_weights";
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

StatisticsObject statistics(nb::handle q_object, nb::handle k_object, nb::handle lse_object, int top,
                            const nb::kwargs& given) {
  constexpr std::string_view op = "attention_statistics";
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
  m.def("attention_statistics", statistics, "q"_a, "k"_a, "lse"_a, nb::kw_only(), "top"_a = 1, "options"_a,
        docs::kAttentionStatistics);
}

}  // namespace mh::python
