// Pages that show attention, of weights from anywhere: multihead/page.py.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "multihead/show/page.h"
#include "python/array.h"
#include "python/bindings.h"

namespace mh::python {

using namespace nb::literals;

namespace {

using Text = std::tuple<std::string, std::vector<std::string>, std::vector<int64_t>>;
using Group = std::tuple<std::string, std::string, size_t, size_t, std::string, nb::list>;

// Arrays (heads, queries, keys) of f32, which outlive the call; Python has checked their shapes.
std::string page_of_arrays(const std::string& title, const std::string& subtitle, const std::vector<Text>& texts,
                           const std::vector<Group>& groups, const std::string& heads) {
  Page page{.title = title, .subtitle = subtitle, .texts = {}, .groups = {}};
  for (const auto& [name, tokens, words] : texts) page.texts.push_back({name, tokens, words});
  std::vector<std::unique_ptr<Array>> held;
  for (const auto& [name, about, queries, keys, head_word, layers] : groups) {
    PageGroup group{
        .name = name, .about = about, .queries = queries, .keys = keys, .head_word = head_word, .layers = {}};
    for (const nb::handle layer : layers) {
      held.push_back(std::make_unique<Array>(Site{"show", "a layer's weights"}, layer));
      const Tensor weights = held.back()->tensor();
      group.layers.push_back(
          {weights.size(0), [weights](int64_t begin, int64_t end) { return weights.slice(1, begin, end); }});
    }
    page.groups.push_back(std::move(group));
  }
  PageOptions options;
  if (!heads.empty()) options.chosen = chosen_heads(heads);
  nb::gil_scoped_release released;
  return page_html(page, options);
}

}  // namespace

void bind_show(nb::module_& m) {
  m.def("attention_page", page_of_arrays, "title"_a, "subtitle"_a, "texts"_a, "groups"_a, "heads"_a);
}

}  // namespace mh::python
