// Checks the mask of a call and turns it into bands, lengths, positions, documents and dense pieces.
#include <algorithm>
#include <limits>

#include "multihead/ops/attention/plan.h"
#include "multihead/ops/run.h"

namespace mh::detail {
namespace {

// Keeps position ± window ± length inside 63 bits.
constexpr int64_t kMaxPosition = int64_t{1} << 40;

Tensor sequence_list(const AttentionPlan& plan, std::string_view what, const Tensor& t, const CallShapes& shapes) {
  check(t.dtype() == DType::i32 && t.rank() == 1 && t.size(0) == plan.size.sequences,
        "{}: {} is {} {}; expected i32 ({}), one per sequence; {}", plan.op, what, name(t.dtype()), t.shape(),
        plan.size.sequences, shapes);
  return readable(t);
}

void plan_lengths(AttentionPlan& plan, const Mask& mask, const CallShapes& shapes) {
  if (mask.lengths.empty()) return;
  // A packed batch is bounded by its longest sequence: a shorter one simply has no keys there.
  const std::vector<kernels::Sequence> whole = plan.sequences;
  for (const Tensor& t : mask.lengths) {
    check(static_cast<bool>(t), "{}: lengths has no memory; expected i32 ({}); {}", plan.op, plan.size.sequences,
          shapes);
    const Tensor list = sequence_list(plan, "lengths", t, shapes);
    const View& lengths = list.view();
    for (int64_t b = 0; b < plan.size.sequences; ++b) {
      const int64_t length = *lengths.at<int32_t>(b);
      const int64_t most = plan.size.packed ? plan.size.Tk : whole[b].k_len;
      check(length >= 0 && length <= most, "{}: lengths[{}] is {}; expected 0 to {}; {}", plan.op, b, length, most,
            shapes);
      plan.sequences[b].k_len = std::min(plan.sequences[b].k_len, length);
    }
  }
}

void plan_positions(AttentionPlan& plan, const Mask& mask, const CallShapes& shapes) {
  check(!mask.offset || (*mask.offset >= -kMaxPosition && *mask.offset <= kMaxPosition),
        "{}: the offset is {}; expected at most 2^40 either way; {}", plan.op, mask.offset.value_or(0), shapes);
  const Tensor list = mask.offsets ? sequence_list(plan, "offsets", mask.offsets, shapes) : Tensor();
  const View& offsets = list.view();
  for (int64_t b = 0; b < plan.size.sequences; ++b) {
    kernels::Sequence& sequence = plan.sequences[b];
    sequence.position = offsets ? *offsets.at<int32_t>(b) : mask.offset.value_or(sequence.k_len - sequence.q_len);
  }
}

void plan_band(AttentionPlan& plan, const Mask& mask, const CallShapes& shapes) {
  check(mask.behind >= -1 && mask.ahead >= -1,
        "{}: the window is ({}, {}); expected numbers of keys, or -1 for unbounded; {}", plan.op, mask.behind,
        mask.ahead, shapes);
  // Beyond every distance there can be, a bound drops nothing.
  constexpr int64_t far = 2 * kMaxPosition;
  kernels::Scores& scores = plan.scores;
  if (mask.behind >= 0 && mask.behind < far) scores.behind = mask.behind;
  if (mask.ahead >= 0 && mask.ahead < far) scores.ahead = mask.ahead;
  if (mask.causal) scores.ahead = 0;

  scores.has_prefix = mask.prefix.has_value() || static_cast<bool>(mask.prefixes);
  if (!scores.has_prefix) return;
  const Tensor list = mask.prefixes ? sequence_list(plan, "prefix", mask.prefixes, shapes) : Tensor();
  const View& prefixes = list.view();
  for (int64_t b = 0; b < plan.size.sequences; ++b) {
    const int64_t n = prefixes ? *prefixes.at<int32_t>(b) : *mask.prefix;
    check(n >= 0, "{}: prefix[{}] is {}; expected a number of keys; {}", plan.op, b, n, shapes);
    plan.sequences[b].prefix = std::min(n, plan.size.Tk);
  }
}

// (B, T) ids, one row for all allowed, with a unit last stride.
Tensor documents_of(const AttentionPlan& plan, std::string_view what, const Tensor& t, int64_t length,
                    const CallShapes& shapes) {
  check(static_cast<bool>(t), "{}: {} has no memory; expected i32 ({}, {}); {}", plan.op, what, plan.size.sequences,
        length, shapes);
  check(t.dtype() == DType::i32 && t.rank() == 2 && (t.size(0) == plan.size.sequences || t.size(0) == 1) &&
            t.size(1) == length,
        "{}: {} is {} {}; expected i32 ({}, {}); {}", plan.op, what, name(t.dtype()), t.shape(), plan.size.sequences,
        length, shapes);
  check(length <= 1 || t.stride(1) == 1, "{}: {} has a last stride of {}; expected 1; {}", plan.op, what, t.stride(1),
        shapes);
  return t.broadcast_to(Shape{plan.size.sequences, length});
}

// A number that no key carries, for queries that sit at no key.
int32_t unused_document(const View& keys, int64_t sequences, int64_t length) {
  std::vector<int32_t> ids;
  const int64_t rows = keys.stride[0] == 0 ? std::min<int64_t>(sequences, 1) : sequences;
  for (int64_t b = 0; b < rows; ++b) ids.insert(ids.end(), keys.at<int32_t>(b), keys.at<int32_t>(b) + length);
  std::sort(ids.begin(), ids.end());
  int32_t candidate = -1;
  for (auto it = std::upper_bound(ids.begin(), ids.end(), candidate); it != ids.begin() && *(it - 1) == candidate;) {
    --candidate;
    while (it != ids.begin() && *(it - 1) > candidate) --it;
  }
  return candidate;
}

// The keys of one document that lie side by side.
struct DocumentRun {
  int32_t id, begin, end;
};

// The runs of `count` keys by their documents' numbers; none where a document has several.
std::vector<DocumentRun> document_runs(const int32_t* ids, int64_t count) {
  std::vector<DocumentRun> runs;
  for (int64_t j = 0; j < count; ++j) {
    const auto at = static_cast<int32_t>(j);
    if (j == 0 || ids[j] != ids[j - 1]) runs.push_back({ids[j], at, at});
    runs.back().end = at + 1;
  }
  std::sort(runs.begin(), runs.end(), [](const DocumentRun& a, const DocumentRun& b) { return a.id < b.id; });
  const auto again = std::adjacent_find(runs.begin(), runs.end(),
                                        [](const DocumentRun& a, const DocumentRun& b) { return a.id == b.id; });
  if (again != runs.end()) runs.clear();
  return runs;
}

// Documents whose keys lie side by side bound their rows as a band does: whole blocks of keys are then never looked at.
// Each sequence for itself: what is computed of one must not depend on the others.
void plan_document_runs(AttentionPlan& plan, const View& queries, const View& keys) {
  const AttentionSizes& s = plan.size;
  std::vector<int32_t> begin(static_cast<size_t>(s.sequences * s.Tq)), end(begin.size());
  bool any = false;
  for (int64_t b = 0; b < s.sequences; ++b) {
    kernels::Sequence& sequence = plan.sequences[b];
    if (sequence.q_len == 0 || sequence.k_len == 0) continue;
    const std::vector<DocumentRun> runs = document_runs(keys.at<int32_t>(b), sequence.k_len);
    sequence.scattered = runs.empty();
    if (sequence.scattered) continue;
    any = true;
    const int32_t* own = queries.at<int32_t>(b);
    auto run = runs.begin();
    for (int64_t i = 0; i < sequence.q_len; ++i) {
      if (run == runs.end() || run->id != own[i]) {
        run = std::lower_bound(runs.begin(), runs.end(), own[i],
                               [](const DocumentRun& each, int32_t id) { return each.id < id; });
      }
      if (run == runs.end() || run->id != own[i]) continue;
      begin[b * s.Tq + i] = run->begin;
      end[b * s.Tq + i] = run->end;
    }
  }
  if (!any) return;
  plan.document_begin = std::move(begin);
  plan.document_end = std::move(end);
  plan.scores.document_begin = placed(plan.document_begin, plan.device, plan.held);
  plan.scores.document_end = placed(plan.document_end, plan.device, plan.held);
}

// What each query belongs to where only keys were told: the document of the key at its position.
View place_queries(AttentionPlan& plan, const View& keys) {
  const AttentionSizes& s = plan.size;
  plan.query_documents.assign(static_cast<size_t>(s.sequences * s.Tq), unused_document(keys, s.sequences, s.Tk));
  for (int64_t b = 0; b < s.sequences; ++b) {
    for (int64_t i = 0; i < s.Tq; ++i) {
      const int64_t at = plan.sequences[b].position + i;
      if (at >= 0 && at < s.Tk) plan.query_documents[b * s.Tq + i] = *keys.at<int32_t>(b, at);
    }
  }
  View view;
  view.data = plan.query_documents.data();
  view.dtype = DType::i32;
  view.rank = 2;
  view.size = {s.sequences, s.Tq, 1, 1, 1, 1};
  view.stride = {s.Tq, 1, 0, 0, 0, 0};
  return view;
}

void plan_documents(AttentionPlan& plan, const Mask& mask, const CallShapes& shapes) {
  check(mask.key_documents || !mask.query_documents,
        "{}: queries have documents and keys have none; expected i32 (B, Tk) for the keys; {}", plan.op, shapes);
  if (!mask.key_documents) return;
  const AttentionSizes& s = plan.size;
  kernels::Scores& scores = plan.scores;
  const Tensor keys = documents_of(plan, "the documents of the keys", mask.key_documents, s.Tk, shapes);
  const Tensor keys_here = readable(keys);
  scores.k_documents = keys.view();
  if (mask.query_documents) {
    const Tensor queries = documents_of(plan, "the documents of the queries", mask.query_documents, s.Tq, shapes);
    const Tensor queries_here = readable(queries);
    scores.q_documents = queries.view();
    plan_document_runs(plan, queries_here.view(), keys_here.view());
    return;
  }
  const View queries = place_queries(plan, keys_here.view());
  scores.q_documents = queries;
  scores.q_documents.data = const_cast<int32_t*>(placed(plan.query_documents, plan.device, plan.held));
  plan_document_runs(plan, queries, keys_here.view());
}

}  // namespace

void plan_masks(AttentionPlan& plan, const Mask& mask, const CallShapes& shapes) {
  plan_lengths(plan, mask, shapes);
  plan_positions(plan, mask, shapes);
  plan_band(plan, mask, shapes);
  plan_documents(plan, mask, shapes);

  kernels::Scores& scores = plan.scores;
  check(mask.dense.size() <= kernels::kMaxDenseMasks, "{}: {} dense masks are joined; expected at most {}; {}", plan.op,
        mask.dense.size(), kernels::kMaxDenseMasks, shapes);
  for (const Mask::Dense& dense : mask.dense) {
    const DType type = dense.where.dtype();
    check(type == DType::boolean || type == DType::u8, "{}: a mask holds {}; expected bool or u8; {}", plan.op,
          name(type), shapes);
    scores.dense[scores.dense_count++] = {pair_view(plan.op, "a mask", dense.where, plan.size), dense.keep};
  }
}

}  // namespace mh::detail
