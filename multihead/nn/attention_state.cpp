// Appending to the caches of a stack, attending over them, and following the hypotheses that go on.
#include "multihead/nn/attention_state.h"

#include <algorithm>
#include <bit>

namespace mh {

namespace {

// Keys of a page: small, so that hypotheses that part ways copy little and what is read is dense (Zen 4, greedy: 2 % of
// the time against pages of 16); as many as attention takes at a time.
constexpr int64_t kPage = 4;

int64_t whole_pages(int64_t keys) { return (keys + kPage - 1) / kPage * kPage; }

// (rows, H, D) as (rows, H, 1, D): one query or key per hypothesis.
Tensor one_each(const Tensor& rows) { return rows.unsqueeze(2); }

// Rows [begin, end) of (rows, H, D) as (1, H, rows, D).
Tensor one_sequence(const Tensor& rows, int64_t begin, int64_t end) {
  return rows.slice(0, begin, end).transpose(0, 1).unsqueeze(0);
}

}  // namespace

AttentionState::AttentionState(const Options& options)
    : options_(options),
      owners_(Sequences::uniform(options.sequences, 1)),
      lengths_(static_cast<size_t>(options.sequences), 0) {
  // A power of two: calls of like size then ask for the same memory again, which is ready. Room that is not used costs
  // addresses alone.
  options_.room = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(options.room)));
}

// Whole pages of each hypothesis, and of one that is copied before its like is left.
int64_t AttentionState::room(int64_t sequences, int64_t width, int64_t longest) {
  return sequences * (width + 1) * whole_pages(longest);
}

// A hypothesis takes a copy of the page in which its prompt ends.
int64_t AttentionState::room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) {
  int64_t keys = room(static_cast<int64_t>(prompts.size()), width, longest + kPage);
  for (const int64_t tokens : prompts) keys += whole_pages(tokens);
  return keys;
}

void AttentionState::add_layer(const MultiHeadAttention& self) {
  const MultiHeadAttentionOptions& o = self.options();
  caches_.emplace_back(KVCacheOptions{.batch = options_.sequences,
                                      .key_heads = o.key_heads,
                                      .key_width = o.key_width,
                                      .value_width = o.value_width,
                                      .capacity = options_.room,
                                      .dtype = options_.dtype,
                                      .page = kPage,
                                      .device = options_.device});
}

void AttentionState::add_layer(const MultiHeadAttention& self, const MultiHeadAttention& cross,
                               const EncoderOutput& context) {
  add_layer(self);
  context_at_ = context.at;
  context_.push_back(cross.keys_values(context.rows, context.rows, context.at.positions));
}

void AttentionState::keep(size_t layer, const MultiHeadAttention::Heads& heads, const Sequences& at) {
  const int32_t* starts = at.starts.data<int32_t>();
  for (int64_t b = 0; b < at.count(); ++b) {
    if (starts[b] == starts[b + 1]) continue;
    caches_[layer].append(one_sequence(heads.k, starts[b], starts[b + 1]),
                          one_sequence(heads.v, starts[b], starts[b + 1]), {static_cast<int32_t>(b)});
  }
}

Tensor AttentionState::self_attend(size_t layer, const MultiHeadAttention& module,
                                   const MultiHeadAttention::Heads& heads, Pass& pass) {
  KVCache& cache = caches_[layer];
  cache.append(one_each(heads.k), one_each(heads.v));
  const Tensor o = attention(one_each(heads.q), cache, module.call_options(pass, {})).o;
  return o.reshape({o.size(0), o.size(1), o.size(3)});
}

Tensor AttentionState::cross_attend(size_t layer, const MultiHeadAttention& module, const Tensor& q, Pass& pass) const {
  const MultiHeadAttention::KeysValues& kv = context_[layer];
  return module.attend({q, kv.k, kv.v}, owners_, context_at_, pass, {});
}

void AttentionState::advance() {
  for (int32_t& length : lengths_) ++length;
}

void AttentionState::advance(const Sequences& prompts) {
  const int32_t* starts = prompts.starts.data<int32_t>();
  for (size_t b = 0; b < lengths_.size(); ++b) lengths_[b] += starts[b + 1] - starts[b];
}

void AttentionState::choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& counts) {
  check(static_cast<int64_t>(counts.size()) == options_.sequences, "choose: numbers for {} sequences; expected {}",
        counts.size(), options_.sequences);
  const Sequences owners = Sequences::of_lengths(counts);
  check(owners.rows == static_cast<int64_t>(parents.size()), "choose: {} hypotheses for {} places", parents.size(),
        owners.rows);
  std::vector<int32_t> lengths;
  for (const int32_t parent : parents) {
    check(parent >= 0 && parent < hypotheses(), "choose: hypothesis {} is not there; expected 0 to {}", parent,
          hypotheses() - 1);
    lengths.push_back(lengths_[static_cast<size_t>(parent)]);
  }
  for (KVCache& cache : caches_) cache.choose(parents);
  owners_ = owners;
  lengths_ = std::move(lengths);
}

Tensor AttentionState::positions() const { return tensor<int32_t>(lengths_, {hypotheses()}); }

int64_t AttentionState::longest() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

}  // namespace mh
