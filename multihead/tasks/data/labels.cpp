// Names and where to find them.
#include "multihead/tasks/data/labels.h"

#include <algorithm>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/nearest.h"
#include "multihead/base/printable.h"

namespace mh {

namespace {

constexpr int64_t kNamed = 8;  // labels in a sentence

}  // namespace

Labels::Labels(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  *this = in_order(std::move(names));
}

Labels Labels::in_order(std::vector<std::string> names) {
  Labels out;
  out.names_ = std::move(names);
  out.sorted_.resize(out.names_.size());
  std::iota(out.sorted_.begin(), out.sorted_.end(), 0);
  std::sort(out.sorted_.begin(), out.sorted_.end(), [&](int32_t a, int32_t b) { return out.name(a) < out.name(b); });
  return out;
}

std::optional<int32_t> Labels::number(std::string_view name) const {
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), name,
                                   [&](int32_t number, std::string_view text) { return this->name(number) < text; });
  if (at == sorted_.end() || this->name(*at) != name) return std::nullopt;
  return *at;
}

int32_t Labels::require(std::string_view name, const std::string& where) const {
  if (const auto known = number(name)) return *known;
  std::string some;
  for (int64_t n = 0; n < std::min(size(), kNamed); ++n)
    some += fmt::format("{}{}", n == 0 ? "" : ", ", printable(this->name(n)));
  const auto meant = size() <= 1000 ? nearest(name, names_) : std::nullopt;
  fail(ErrorKind::invalid_argument, "{}: the label {} does not occur in the training data; {}", where, printable(name),
       meant ? fmt::format("did you mean {}?", printable(*meant))
             : fmt::format("expected one of its {}: {}{}", size(), some, size() > kNamed ? ", …" : ""));
}

}  // namespace mh
