// Pages: taken as sequences grow, shared until one of their sequences writes, given back.
#include <algorithm>
#include <cstring>
#include <map>

#include "multihead/ops/attention/kv_cache.h"
#include "multihead/ops/attention/kv_cache_pages.h"

namespace mh {
namespace {

using detail::pages_for;

// Keys [0, count) of entry `from` become those of entry `to`, for every head.
void copy_entry(const Tensor& t, int64_t from, int64_t to, int64_t count) {
  if (!t || count == 0) return;
  t.select(0, to).slice(1, 0, count).copy_from(t.select(0, from).slice(1, 0, count));
}

}  // namespace

int32_t KVCache::take_page() {
  const int32_t page = free_pages_.back();
  free_pages_.pop_back();
  page_users_[page] = 1;
  return page;
}

void KVCache::leave_page(int32_t page) {
  if (--page_users_[page] == 0) free_pages_.push_back(page);
}

int64_t KVCache::pages_to_grow(const std::vector<int32_t>& sequences, int64_t count) const {
  const int64_t page = options_.page, free = static_cast<int64_t>(free_pages_.size());
  int64_t needed = 0, shared = 0;
  for (const int32_t b : sequences) {
    const int64_t length = lengths_[b];
    needed += pages_for(length + count, page) - pages_for(length, page);
    shared += length % page != 0 && page_users_[*pages.view().at<int32_t>(b, length / page)] > 1;
  }
  if (shared == 0 || needed + shared <= free) return needed + shared;

  // A shared page whose other users all leave is written in place: count exactly where it decides.
  std::map<int32_t, int32_t> left;
  for (const int32_t b : sequences) {
    if (lengths_[b] % page == 0) continue;
    const int32_t last = *pages.view().at<int32_t>(b, lengths_[b] / page);
    const auto it = left.try_emplace(last, page_users_[last]).first;
    if (it->second > 1) {
      ++needed;
      --it->second;
    }
  }
  return needed;
}

void KVCache::widen_table(int64_t columns) {
  if (columns <= pages.size(1)) return;
  const Tensor wider = zeros({pages.size(0), std::max(columns, 2 * pages.size(1))}, DType::i32);
  wider.slice(1, 0, pages.size(1)).copy_from(pages);
  pages = wider;
}

void KVCache::make_room(int64_t b, int64_t count) {
  const int64_t length = lengths_[b], page = options_.page;
  widen_table(pages_for(length + count, page));
  int32_t* table = pages.view().at<int32_t>(b);
  if (length % page != 0 && page_users_[table[length / page]] > 1) {
    const int32_t shared = table[length / page], own = take_page();
    for (const Tensor* t : {&keys, &values, &key_scales, &value_scales}) copy_entry(*t, shared, own, length % page);
    leave_page(shared);
    table[length / page] = own;
  }
  for (int64_t n = pages_for(length, page); n < pages_for(length + count, page); ++n) table[n] = take_page();
}

void KVCache::truncate(int64_t b, int64_t length) {
  check(b >= 0 && b < options_.batch, "kv_cache: sequence {} is not in the cache; expected 0 to {}", b,
        options_.batch - 1);
  check(length >= 0 && length <= lengths_[b], "kv_cache: sequence {} cannot be cut to {} keys; expected 0 to {}", b,
        length, lengths_[b]);
  if (options_.page > 0) {
    for (int64_t n = pages_for(length, options_.page); n < pages_for(lengths_[b], options_.page); ++n) {
      leave_page(*pages.view().at<int32_t>(b, n));
    }
  }
  lengths_[b] = static_cast<int32_t>(length);
}

void KVCache::copy(int64_t from, int64_t to) {
  for (const int64_t b : {from, to}) {
    check(b >= 0 && b < options_.batch, "kv_cache: sequence {} is not in the cache; expected 0 to {}", b,
          options_.batch - 1);
  }
  if (from == to) return;
  truncate(to, 0);
  if (options_.page > 0) {
    for (int64_t n = 0; n < pages_for(lengths_[from], options_.page); ++n) {
      const int32_t page = *pages.view().at<int32_t>(from, n);
      ++page_users_[page];
      *pages.view().at<int32_t>(to, n) = page;
    }
  } else {
    for (const Tensor* t : {&keys, &values, &key_scales, &value_scales}) copy_entry(*t, from, to, lengths_[from]);
  }
  lengths_[to] = lengths_[from];
}

void KVCache::choose(const std::vector<int32_t>& parents) {
  for (const int32_t b : parents) {
    check(b >= 0 && b < options_.batch, "kv_cache: sequence {} is not in the cache; expected 0 to {}", b,
          options_.batch - 1);
  }
  check(!parents.empty(), "kv_cache: no sequence is chosen; expected at least one");
  const int64_t count = static_cast<int64_t>(parents.size());
  std::vector<int32_t> lengths;
  lengths.reserve(parents.size());
  for (const int32_t b : parents) lengths.push_back(lengths_[b]);
  if (options_.page > 0) {
    choose_pages(parents);
  } else {
    for (Tensor* t : {&keys, &values, &key_scales, &value_scales}) {
      if (!*t) continue;
      Shape shape = t->shape();
      shape[0] = count;
      const Tensor chosen = empty(shape, t->dtype(), t->device());
      for (int64_t n = 0; n < count; ++n) {
        if (lengths[n] > 0)
          chosen.select(0, n).slice(1, 0, lengths[n]).copy_from(t->select(0, parents[n]).slice(1, 0, lengths[n]));
      }
      *t = chosen;
    }
  }
  lengths_ = std::move(lengths);
  options_.batch = count;
}

void KVCache::choose_pages(const std::vector<int32_t>& parents) {
  const int64_t columns = pages.size(1), page = options_.page;
  const Tensor table = empty({static_cast<int64_t>(parents.size()), columns}, DType::i32);
  for (size_t n = 0; n < parents.size(); ++n) {
    const int32_t* from = pages.view().at<int32_t>(parents[n]);
    std::memcpy(table.view().at<int32_t>(static_cast<int64_t>(n)), from, static_cast<size_t>(columns) * 4);
    for (int64_t i = 0; i < pages_for(lengths_[parents[n]], page); ++i) ++page_users_[from[i]];
  }
  for (int64_t b = 0; b < options_.batch; ++b) {
    const int32_t* held = pages.view().at<int32_t>(b);
    for (int64_t i = 0; i < pages_for(lengths_[b], page); ++i) leave_page(held[i]);
  }
  pages = table;
}

}  // namespace mh
