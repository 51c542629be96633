// What a model looked at, for multihead/recording.py: weights, statistics and pages, made when asked for.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/show/page.h"
#include "python/array.h"
#include "python/bindings.h"
#include "python/recording_object.h"
#include "python/statistics_object.h"

namespace mh::python {

using namespace nb::literals;

namespace {

constexpr const char* kKinds[] = {"encoder", "decoder", "cross"};  // by AttentionKind

using LayerFacts = std::tuple<std::string, int64_t, int64_t, int64_t, int64_t>;  // kind, layer, heads, queries, keys

std::vector<LayerFacts> layers_of(const RecordingObject& self) {
  std::vector<LayerFacts> out;
  for (const RecordedLayer& each : self.recording.layers)
    out.emplace_back(kKinds[static_cast<int>(each.kind)], each.layer, each.heads(), each.queries(), each.keys());
  return out;
}

using RecordedTextTuple = std::tuple<std::string, std::vector<std::string>, std::vector<int64_t>>;

std::vector<RecordedTextTuple> texts_of(const RecordingObject& self) {
  std::vector<RecordedTextTuple> out;
  for (const RecordedText& each : self.recording.texts) out.emplace_back(each.name, each.tokens, each.words);
  return out;
}

using ChosenRows = std::optional<std::vector<int32_t>>;  // none: all

nb::object weights_of(const RecordingObject& self, size_t layer, const ChosenRows& heads, const ChosenRows& rows) {
  for (const ChosenRows* list : {&heads, &rows})
    check(!*list || !(*list)->empty(), "weights: the list of {} is empty; expected at least one, or None for all",
          list == &heads ? "heads" : "rows");
  Tensor weights;
  {
    nb::gil_scoped_release released;
    weights = self.recording.layers.at(layer)
                  .weights(heads.value_or(std::vector<int32_t>{}), rows.value_or(std::vector<int32_t>{}))
                  .contiguous();
  }
  return to_numpy(weights);
}

StatisticsObject statistics_of(const RecordingObject& self, size_t layer, int top) {
  AttentionStatistics s;
  {
    nb::gil_scoped_release released;
    s = self.recording.layers.at(layer).statistics(top);
  }
  return {to_numpy(s.entropy), to_numpy(s.top_keys), to_numpy(s.top_weights), to_numpy(s.received),
          to_numpy(s.distance)};
}

nb::object rollout_of(const RecordingObject& self, bool decoder) {
  Tensor out;
  {
    nb::gil_scoped_release released;
    out = self.recording.rollout(decoder ? AttentionKind::decoder : AttentionKind::encoder);
    if (!out) out = empty({0, 0, 0});
  }
  return to_numpy(out);
}

std::string page_of_recording(const RecordingObject& self, const std::string& title, const std::string& subtitle,
                              const std::string& heads) {
  PageOptions options;
  if (!heads.empty()) options.chosen = chosen_heads(heads);
  return page_html(page_of(self.recording, title, subtitle), options);
}

}  // namespace

void bind_recording(nb::module_& m) {
  nb::class_<RecordingObject>(m, "Recording", "What multihead.Recording holds.")
      .def("texts", texts_of)
      .def("layers", layers_of)
      .def("cut", [](const RecordingObject& self) { return self.recording.cut; })
      .def("weights", weights_of, "layer"_a, "heads"_a.none(), "rows"_a.none())
      .def("statistics", statistics_of, "layer"_a, "top"_a)
      .def("rollout", rollout_of, "decoder"_a)
      .def("page", page_of_recording, "title"_a, "subtitle"_a, "heads"_a, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace mh::python
