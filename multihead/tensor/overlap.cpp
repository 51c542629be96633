// Whether elements share bytes: a search for two indices whose addresses meet.
#include <algorithm>
#include <cstdlib>

#include "multihead/tensor/tensor.h"

namespace mh {

namespace {

__extension__ using Wide = __int128;  // sums over two address ranges

Wide floor_divide(Wide a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
Wide ceil_divide(Wide a, int64_t b) { return -floor_divide(-a, b); }

// The difference of two addresses: a sum of terms step · x with low <= x <= high.
class Differences {
 public:
  void add(int64_t step, int64_t low, int64_t high) {
    if (step == 0 || (low == 0 && high == 0)) return;
    if (step < 0) {
      step = -step;
      std::swap(low, high);
      low = -low;
      high = -high;
    }
    for (int i = 0; i < count_; ++i) {
      if (terms_[i].step != step) continue;
      terms_[i].low += low;
      terms_[i].high += high;
      return;
    }
    terms_[count_++] = {step, low, high};
  }

  // Whether one lies in [low, high]. Where steps nest, as in every tensor cut from a dense one, only two or three x are
  // left per term; else the search may give up and say yes.
  bool reach(Wide low, Wide high) {
    std::sort(terms_.begin(), terms_.begin() + count_, [](const Term& a, const Term& b) { return a.step > b.step; });
    for (int i = count_; i-- > 0;) {
      rest_low_[i] = rest_low_[i + 1] + Wide{terms_[i].step} * terms_[i].low;
      rest_high_[i] = rest_high_[i + 1] + Wide{terms_[i].step} * terms_[i].high;
    }
    budget_ = 10000;
    return search(0, low, high);
  }

 private:
  struct Term {
    int64_t step, low, high;
  };

  bool search(int i, Wide low, Wide high) {
    if (low > rest_high_[i] || high < rest_low_[i]) return false;
    if (i == count_ || --budget_ < 0) return true;
    const Term& term = terms_[i];
    const Wide first = std::max<Wide>(term.low, ceil_divide(low - rest_high_[i + 1], term.step));
    const Wide last = std::min<Wide>(term.high, floor_divide(high - rest_low_[i + 1], term.step));
    for (Wide x = first; x <= last; ++x) {
      if (search(i + 1, low - x * term.step, high - x * term.step)) return true;
    }
    return false;
  }

  static constexpr size_t kMostTerms = 2 * kMaxRank;
  std::array<Term, kMostTerms> terms_;
  std::array<Wide, kMostTerms + 1> rest_low_{}, rest_high_{};  // of terms i and on
  int count_ = 0;
  int budget_ = 0;
};

}  // namespace

bool overlaps(const Tensor& a, const Tensor& b) {
  const View& va = a.view();
  const View& vb = b.view();
  if (!va || !vb || a.count() == 0 || b.count() == 0 || a.device() != b.device()) return false;
  const int64_t a_bytes = size_of(va.dtype), b_bytes = size_of(vb.dtype);
  Differences differences;
  for (int axis = 0; axis < va.rank; ++axis) differences.add(va.stride[axis] * a_bytes, 0, va.size[axis] - 1);
  for (int axis = 0; axis < vb.rank; ++axis) differences.add(vb.stride[axis] * b_bytes, 1 - vb.size[axis], 0);
  const Wide between = Wide{reinterpret_cast<intptr_t>(vb.data)} - reinterpret_cast<intptr_t>(va.data);
  return differences.reach(between - a_bytes + 1, between + b_bytes - 1);
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
    const int64_t step = std::abs(view.stride[first]);
    Differences differences;
    differences.add(step, 1, view.size[first] - 1);
    for (int axis = first + 1; axis < view.rank; ++axis) {
      differences.add(view.stride[axis], 1 - view.size[axis], view.size[axis] - 1);
    }
    if (differences.reach(0, 0)) return true;
  }
  return false;
}

}  // namespace mh
