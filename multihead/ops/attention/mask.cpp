// Mask pieces and how two masks join.
#include "multihead/ops/attention/mask.h"

#include <algorithm>

namespace mh {
namespace {

int64_t tighter(int64_t a, int64_t b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return std::min(a, b);
}

bool is_offset_list(const Tensor& t) { return t.rank() == 1 && t.dtype() == DType::i32; }

// Whether two masks put every query at the same place; true where one of them does not say.
bool same_offsets(const Mask& a, const Mask& b) {
  if (!(a.offset || a.offsets) || !(b.offset || b.offsets)) return true;
  if (a.offset && b.offset) return *a.offset == *b.offset;
  const Tensor list = (a.offsets ? a.offsets : b.offsets).to(Device{});
  const Tensor other = a.offsets && b.offsets ? b.offsets.to(Device{}) : list;
  if (!is_offset_list(list) || !is_offset_list(other) || list.size(0) != other.size(0)) return false;
  const int64_t constant = a.offset ? *a.offset : b.offset.value_or(0);
  const bool lists = a.offsets && b.offsets;
  for (int64_t n = 0; n < list.size(0); ++n) {
    const int64_t expected = lists ? *other.view().at<int32_t>(n) : constant;
    if (*list.view().at<int32_t>(n) != expected) return false;
  }
  return true;
}

}  // namespace

Mask keep(const Tensor& where) {
  Mask mask;
  mask.dense.push_back({where, true});
  return mask;
}

Mask drop(const Tensor& where) {
  Mask mask;
  mask.dense.push_back({where, false});
  return mask;
}

Mask lengths(const Tensor& lengths) {
  Mask mask;
  mask.lengths.push_back(lengths);
  return mask;
}

Mask causal() {
  Mask mask;
  mask.causal = true;
  return mask;
}

Mask causal(int64_t offset) { return causal() & positions(offset); }

Mask causal(const Tensor& offsets) { return causal() & positions(offsets); }

Mask from_torch_causal() { return causal(0); }

Mask positions(int64_t offset) {
  Mask mask;
  mask.offset = offset;
  return mask;
}

Mask positions(const Tensor& offsets) {
  Mask mask;
  mask.offsets = offsets;
  return mask;
}

Mask window(int64_t left, int64_t right) {
  check(left >= -1 && right >= -1, "window: left is {} and right is {}; expected numbers of keys, or -1 for unbounded",
        left, right);
  Mask mask;
  mask.behind = left;
  mask.ahead = right;
  return mask;
}

Mask prefix(int64_t n) {
  check(n >= 0, "prefix: n is {}; expected a number of keys", n);
  Mask mask;
  mask.prefix = n;
  return mask;
}

Mask prefix(const Tensor& n) {
  Mask mask;
  mask.prefixes = n;
  return mask;
}

Mask documents(const Tensor& ids) {
  Mask mask;
  mask.key_documents = ids;
  return mask;
}

Mask documents(const Tensor& query_ids, const Tensor& key_ids) {
  Mask mask;
  mask.query_documents = query_ids;
  mask.key_documents = key_ids;
  return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
  const auto has_prefix = [](const Mask& m) { return m.prefix.has_value() || static_cast<bool>(m.prefixes); };
  check(same_offsets(a, b), "mask &: both sides place the queries, and differently; expected one offset");
  check(!has_prefix(a) || !has_prefix(b), "mask &: both sides give a prefix; expected one at most");
  check(!a.key_documents || !b.key_documents, "mask &: both sides give documents; expected one at most");

  Mask joined = a;
  joined.dense.insert(joined.dense.end(), b.dense.begin(), b.dense.end());
  joined.lengths.insert(joined.lengths.end(), b.lengths.begin(), b.lengths.end());
  joined.behind = tighter(a.behind, b.behind);
  joined.ahead = tighter(a.ahead, b.ahead);
  joined.causal = a.causal || b.causal;
  if (!joined.offset && !joined.offsets) {
    joined.offset = b.offset;
    joined.offsets = b.offsets;
  }
  if (!has_prefix(a)) {
    joined.prefix = b.prefix;
    joined.prefixes = b.prefixes;
  }
  if (!a.key_documents) {
    joined.query_documents = b.query_documents;
    joined.key_documents = b.key_documents;
  }
  return joined;
}

}  // namespace mh
