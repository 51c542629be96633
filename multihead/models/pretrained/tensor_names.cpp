// Matches names with "{}" for numbers, and cuts packed tensors into parameters.
#include "multihead/models/pretrained/tensor_names.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "multihead/base/printable.h"

namespace mh {

namespace {

// What stands for each "{}" of a pattern, and what follows it in the name.
struct Match {
  std::vector<std::string_view> numbers;
  std::string_view rest;
};

std::optional<Match> match_start(std::string_view pattern, std::string_view name) {
  Match out;
  while (!pattern.empty()) {
    const bool number = pattern.starts_with("{}");
    if (number) {
      const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
      if (digits == 0) return {};
      out.numbers.push_back(name.substr(0, digits));
      name.remove_prefix(digits);
      pattern.remove_prefix(2);
    } else {
      if (name.empty() || name.front() != pattern.front()) return {};
      name.remove_prefix(1);
      pattern.remove_prefix(1);
    }
  }
  out.rest = name;
  return out;
}

std::string filled(std::string_view pattern, const std::vector<std::string_view>& numbers) {
  std::string out;
  size_t next = 0;
  while (!pattern.empty()) {
    if (pattern.starts_with("{}") && next < numbers.size()) {
      out += numbers[next++];
      pattern.remove_prefix(2);
    } else {
      out += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  return out;
}

// ".weight" for ".gamma", as very old files have it; empty where the row says the whole name; nothing for others.
std::optional<std::string_view> ending(std::string_view rest, bool exact) {
  if (exact) return rest.empty() ? std::optional(rest) : std::nullopt;
  if (rest == ".weight" || rest == ".gamma") return ".weight";
  if (rest == ".bias" || rest == ".beta") return ".bias";
  return {};
}

// The name on the other side of a row, where it matches.
std::optional<std::string> across(std::string_view from, std::string_view to, std::string_view name, bool exact) {
  const std::optional<Match> match = match_start(from, name);
  if (!match) return {};
  const std::optional<std::string_view> end = ending(match->rest, exact);
  if (!end) return {};
  return filled(to, match->numbers) + std::string(*end);
}

Shape shape_of(const std::vector<int64_t>& sizes) { return Shape(sizes); }

// Where a parameter lies in the file's tensor: a view, of (heads, width, …) where the parts stand by head.
Tensor view_of(const Tensor& file, const TensorLayout& layout, const std::string& name) {
  Tensor x = file;
  check(layout.shape.empty() || x.shape() == shape_of(layout.shape), "{}: expected the shape {}; it is {}",
        printable(name), shape_of(layout.shape), x.shape());
  if (layout.transposed && x.rank() == 2) x = x.transpose(0, 1);
  if (layout.parts == 1) return x;
  const int64_t groups = layout.heads > 0 ? layout.heads : 1;
  check(x.rank() >= 1 && x.size(0) % (layout.parts * groups) == 0,
        "{}: {} parts of {} heads do not divide its rows; expected that; it is {}", printable(name), layout.parts,
        groups, x.shape());
  const int64_t width = x.size(0) / (layout.parts * groups);
  if (layout.heads == 0) return x.slice(0, layout.part * width, (layout.part + 1) * width);
  std::vector<int64_t> sizes{groups, layout.parts, width};
  for (int axis = 1; axis < x.rank(); ++axis) sizes.push_back(x.size(axis));
  return x.contiguous().reshape(Shape(sizes)).select(1, layout.part);
}

// The parameter of that view, in our shape.
Tensor parameter_of(const Tensor& view, const TensorLayout& layout) {
  if (layout.heads > 0 && layout.parts > 1) {
    std::vector<int64_t> sizes{view.size(0) * view.size(1)};
    for (int axis = 2; axis < view.rank(); ++axis) sizes.push_back(view.size(axis));
    return view.reshape(Shape(sizes));
  }
  if (layout.one_row) return view.reshape({view.count()});
  if (layout.shape.empty()) return view;
  if (view.rank() == 1) return view.reshape({1, view.size(0)});
  // Leading axes of 1 are the file's; trailing ones belong to one row.
  int first = 0;
  while (first + 2 < view.rank() && view.size(first) == 1) ++first;
  return view.reshape({view.size(first), -1});
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.view().data, y.view().data, static_cast<size_t>(x.count() * size_of(x.dtype()))) == 0;
}

}  // namespace

TensorNames::TensorNames(std::vector<TensorName> rows, std::vector<std::string> prefixes,
                         std::vector<std::string> ignored)
    : rows_(std::move(rows)), prefixes_(std::move(prefixes)), ignored_(std::move(ignored)) {}

std::vector<TensorNames::Place> TensorNames::places(std::string_view name) const {
  std::vector<std::string_view> candidates{name};
  for (const std::string& prefix : prefixes_)
    if (name.starts_with(prefix)) candidates.push_back(name.substr(prefix.size()));
  std::vector<Place> out;
  for (const std::string_view candidate : candidates) {
    for (const TensorName& row : rows_)
      if (const auto ours = across(row.file, row.ours, candidate, row.layout.exact)) out.push_back({*ours, &row});
    if (!out.empty()) break;
  }
  return out;
}

bool TensorNames::is_ignored(std::string_view name) const {
  return std::any_of(ignored_.begin(), ignored_.end(), [&](const std::string& pattern) {
    if (pattern.starts_with("*")) return name.ends_with(std::string_view(pattern).substr(1));
    const std::optional<Match> match = match_start(pattern, name);
    return match && match->rest.empty();
  });
}

TensorNames::Loaded TensorNames::load(const NamedTensors& file) const {
  Loaded out;
  std::map<std::string, std::string> sources;
  for (const auto& [name, tensor] : file) {
    const std::vector<Place> found = places(name);
    if (found.empty() && !is_ignored(name)) out.unknown.push_back(name);
    for (const Place& place : found) {
      const Tensor value = parameter_of(view_of(tensor, place.row->layout, name), place.row->layout);
      const auto [at, added] = out.ours.emplace(place.ours, value);
      check(added || same_bits(at->second, value), "{} and {} are one parameter of the model, and differ",
            printable(sources[place.ours]), printable(name));
      if (added) sources[place.ours] = name;
    }
  }
  return out;
}

std::string TensorNames::file_name(const std::string& ours, bool prefixed) const {
  for (const TensorName& row : rows_) {
    const auto name = across(row.ours, row.file, ours, row.layout.exact);
    if (!name) continue;
    const bool below = prefixed && !prefixes_.empty() && !row.top && !ours.starts_with("head");
    return (below ? prefixes_.front() : "") + *name;
  }
  return ours;
}

Tensor TensorNames::updated(const std::string& name, const Tensor& tensor, const NamedTensors& ours) const {
  const std::vector<Place> found = places(name);
  Tensor out = tensor;
  for (const Place& place : found) {
    const auto value = ours.find(place.ours);
    if (value == ours.end()) continue;
    if (out.view().data == tensor.view().data) out = tensor.clone();
    const Tensor view = view_of(out, place.row->layout, name);
    view.copy_from(value->second.detach().reshape(view.shape()));
  }
  return out;
}

NamedTensors TensorNames::store(const NamedTensors& ours, bool prefixed) const {
  NamedTensors out;
  for (const auto& [name, value] : ours) {
    const std::string file = file_name(name, prefixed);
    const std::vector<Place> found = places(file);
    const auto place = std::find_if(found.begin(), found.end(), [&](const Place& p) { return p.ours == name; });
    if (place == found.end()) fail(ErrorKind::internal, "tensors: {} has no row in the family's table", name);
    const TensorLayout& layout = place->row->layout;
    Shape shape = layout.shape.empty() ? value.shape() : shape_of(layout.shape);
    if (layout.one_row) shape = Shape{1, value.count()};
    if (layout.parts > 1) shape[0] *= layout.parts;
    if (layout.transposed && shape.rank() == 2) std::swap(shape[0], shape[1]);
    const auto [at, added] = out.emplace(file, Tensor());
    if (added) at->second = empty(shape, value.dtype());
    const Tensor view = view_of(at->second, layout, file);
    view.copy_from(value.detach().reshape(view.shape()));
  }
  return out;
}

}  // namespace mh
