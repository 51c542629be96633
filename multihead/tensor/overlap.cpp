// Whether elements share bytes: a search for two indices whose addresses meet.
#include <algorithm>
#include <cstdlib>

#include "multihead/tensor/tensor.h"

namespace mh {

namespace {

// The difference of two addresses is a sum of terms step · x with low <= x <= high, steps > 0.
struct Term {
  int64_t step, low, high;
};

__extension__ using Wide = __int128;  // sums of spans of two address ranges

Wide floor_divide(Wide a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
Wide ceil_divide(Wide a, int64_t b) { return -floor_divide(-a, b); }

// Is there a sum in [low, high]? Terms go from the largest step to the smallest. Where steps nest, as in every tensor
// cut from a dense one, only two or three x are left per term; else the search gives up and says yes.
class Search {
 public:
  explicit Search(std::vector<Term> terms) : terms_(std::move(terms)) {
    std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.step > b.step; });
    rest_low_.assign(terms_.size() + 1, 0);
    rest_high_.assign(terms_.size() + 1, 0);
    for (size_t i = terms_.size(); i-- > 0;) {
      rest_low_[i] = rest_low_[i + 1] + Wide{terms_[i].step} * terms_[i].low;
      rest_high_[i] = rest_high_[i + 1] + Wide{terms_[i].step} * terms_[i].high;
    }
  }

  bool finds(Wide low, Wide high) { return finds(0, low, high); }

 private:
  bool finds(size_t i, Wide low, Wide high) {
    if (low > rest_high_[i] || high < rest_low_[i]) return false;
    if (i == terms_.size() || --budget_ < 0) return true;
    const Term& term = terms_[i];
    const Wide first = std::max<Wide>(term.low, ceil_divide(low - rest_high_[i + 1], term.step));
    const Wide last = std::min<Wide>(term.high, floor_divide(high - rest_low_[i + 1], term.step));
    for (Wide x = first; x <= last; ++x) {
      if (finds(i + 1, low - x * term.step, high - x * term.step)) return true;
    }
    return false;
  }

  std::vector<Term> terms_;
  std::vector<Wide> rest_low_, rest_high_;
  int budget_ = 10000;
};

void add_term(std::vector<Term>& terms, int64_t step, int64_t low, int64_t high) {
  if (step == 0 || low == high) return;
  if (step < 0) {
    step = -step;
    std::swap(low, high);
    low = -low;
    high = -high;
  }
  for (Term& term : terms) {
    if (term.step != step) continue;
    term.low += low;
    term.high += high;
    return;
  }
  terms.push_back({step, low, high});
}

}  // namespace

bool overlaps(const Tensor& a, const Tensor& b) {
  const View& va = a.view();
  const View& vb = b.view();
  if (!va || !vb || a.count() == 0 || b.count() == 0) return false;
  const int64_t a_bytes = size_of(va.dtype), b_bytes = size_of(vb.dtype);
  std::vector<Term> terms;
  for (int axis = 0; axis < va.rank; ++axis) add_term(terms, va.stride[axis] * a_bytes, 0, va.size[axis] - 1);
  for (int axis = 0; axis < vb.rank; ++axis) add_term(terms, vb.stride[axis] * b_bytes, 1 - vb.size[axis], 0);
  const Wide between = Wide{reinterpret_cast<intptr_t>(vb.data)} - reinterpret_cast<intptr_t>(va.data);
  return Search(std::move(terms)).finds(between - a_bytes + 1, between + b_bytes - 1);
}

bool overlaps_itself(const Tensor& x) {
  const View& view = x.view();
  if (!view || x.count() == 0) return false;
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.stride[axis] == 0 && view.size[axis] > 1) return true;
  }
  // Two different indices differ first in some axis, where the difference may be taken as positive.
  for (int first = 0; first < view.rank; ++first) {
    if (view.size[first] == 1) continue;
    Wide low = 0, high = 0;
    std::vector<Term> terms;
    const int64_t step = std::abs(view.stride[first]);
    low -= step;
    high -= step;
    add_term(terms, step, 0, view.size[first] - 2);
    for (int axis = first + 1; axis < view.rank; ++axis) {
      add_term(terms, view.stride[axis], 1 - view.size[axis], view.size[axis] - 1);
    }
    if (Search(std::move(terms)).finds(low, high)) return true;
  }
  return false;
}

}  // namespace mh
