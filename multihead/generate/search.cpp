// The loop that writes a batch, and the batches.
#include "multihead/generate/search.h"

#include <algorithm>

#include "multihead/base/parallel.h"
#include "multihead/generate/batches.h"
#include "multihead/generate/beam.h"
#include "multihead/generate/check_options.h"
#include "multihead/generate/rules.h"
#include "multihead/generate/sampler.h"
#include "multihead/ops/softmax.h"

namespace mh {

namespace {

using Sources = std::vector<std::vector<int32_t>>;

void check_sources(const char* op, const Transformer& model, const Sources& sources) {
  const TransformerConfig& config = model.config();
  for (size_t n = 0; n < sources.size(); ++n) {
    check(static_cast<int64_t>(sources[n].size()) < config.max_length,
          "{}: source {} has {} tokens; expected at most {}, the model's length without </s>", op, n, sources[n].size(),
          config.max_length - 1);
    for (const int32_t id : sources[n])
      check(id >= 0 && id < config.vocabulary, "{}: source {} holds the token {}; expected 0 to {}", op, n, id,
            config.vocabulary - 1);
  }
}

// What a batch is written with: `Writer` is a Beam or a Sampler per sentence.
struct Job {
  const Transformer& model;
  const WritingRules& rules;
  DType compute;
  int64_t width;   // hypotheses of a sentence, at most
  int64_t budget;  // tokens of a batch
};

// Rows of the hypotheses that go on, as the model wants them next.
struct Rows {
  std::vector<int32_t> ids, parents;
  std::vector<int64_t> counts;  // by sentence

  // Whether every hypothesis of before goes on, in its place.
  bool same_as(int64_t before) const {
    if (static_cast<int64_t>(parents.size()) != before) return false;
    for (size_t n = 0; n < parents.size(); ++n) {
      if (parents[n] != static_cast<int32_t>(n)) return false;
    }
    return true;
  }
};

template <class Writer>
void gather_rows(const std::vector<Writer>& writers, Rows& rows) {
  rows.ids.clear();
  rows.parents.clear();
  int32_t first = 0;
  for (size_t b = 0; b < writers.size(); ++b) {
    for (const detail::Live& hypothesis : writers[b].live()) {
      rows.ids.push_back(hypothesis.token);
      rows.parents.push_back(first + hypothesis.parent);
    }
    first += static_cast<int32_t>(rows.counts[b]);
    rows.counts[b] = static_cast<int64_t>(writers[b].live().size());
  }
}

template <class Writer>
void apply_rules(const Job& job, const std::vector<Writer>& writers, const Tensor& logits) {
  std::vector<int32_t> written;
  float* row = logits.data<float>();
  for (const Writer& writer : writers) {
    for (const detail::Live& hypothesis : writer.live()) {
      writer.tree().ids_to(hypothesis.node, written);
      detail::apply_rules(job.rules, written, job.model.config().end, row);
      row += logits.size(1);
    }
  }
}

void take_top(std::vector<detail::Beam>& beams, const TopK& top) {
  const int64_t k = top.values.size(1);
  const float* values = top.values.data<float>();
  const int32_t* tokens = top.indices.data<int32_t>();
  for (detail::Beam& beam : beams) {
    const int64_t used = static_cast<int64_t>(beam.live().size()) * k;
    if (used > 0) beam.advance(values, tokens, k);
    values += used;
    tokens += used;
  }
}

// Every writer one token further; `rows` are those of the hypotheses before the output projection.
void advance(const Job& job, std::vector<detail::Beam>& beams, const Tensor& rows) {
  const int64_t k = std::min(job.width + 1, job.model.config().vocabulary);
  if (!detail::changes_logits(job.rules)) return take_top(beams, job.model.top_tokens(rows, k));
  const Tensor logits = job.model.logits(rows);
  apply_rules(job, beams, logits);
  take_top(beams, top_k(logits, k));
}

void advance(const Job& job, std::vector<detail::Sampler>& samplers, const Tensor& hidden) {
  const Tensor logits = job.model.logits(hidden);
  if (detail::changes_logits(job.rules)) apply_rules(job, samplers, logits);
  std::vector<const float*> rows;
  const float* row = logits.data<float>();
  for (const detail::Sampler& sampler : samplers) {
    rows.push_back(row);
    row += static_cast<int64_t>(sampler.live().size()) * logits.size(1);
  }
  parallel_for(static_cast<int64_t>(samplers.size()), [&](int64_t b) {
    detail::Sampler& sampler = samplers[static_cast<size_t>(b)];
    if (!sampler.live().empty()) sampler.advance(rows[static_cast<size_t>(b)], logits.size(1));
  });
}

template <class Writer>
void write_batch(const Job& job, const Sources& sources, int64_t room, std::vector<Writer>& writers) {
  Pass pass = Pass::inference(job.compute);
  const Memory memory = job.model.encode(token_batch(sources), pass);
  DecoderState state = job.model.begin(memory, room, pass);
  Rows rows{.ids = std::vector<int32_t>(sources.size(), job.model.config().begin),
            .parents = {},
            .counts = std::vector<int64_t>(sources.size(), 1)};
  while (!rows.ids.empty()) {
    advance(job, writers, job.model.step_rows(state, rows.ids, pass));
    gather_rows(writers, rows);
    if (!rows.ids.empty() && !rows.same_as(state.hypotheses())) state.choose(rows.parents, rows.counts);
  }
}

// Batches on threads of their own, or, where there are too few of them, one after the other on all threads.
template <class Body>
void for_batches(size_t count, const Body& body) {
  if (count >= static_cast<size_t>(threads())) return parallel_for(static_cast<int64_t>(count), body);
  for (size_t n = 0; n < count; ++n) body(static_cast<int64_t>(n));
}

// The most room that a batch needs. Every batch takes as much: then it is the same memory again, and none of it comes
// by page faults (Zen 4, greedy: 8 of 100 of the time).
int64_t most_room(const std::vector<std::vector<int64_t>>& batches, int64_t width, const std::vector<int64_t>& limits) {
  int64_t most = 0;
  for (const auto& batch : batches) {
    int64_t longest = 0;
    for (const int64_t sentence : batch) longest = std::max(longest, limits[static_cast<size_t>(sentence)]);
    most = std::max(most, Transformer::room(static_cast<int64_t>(batch.size()), width, longest));
  }
  return most;
}

// make(sentence, limit) gives the writer of one sentence.
template <class Make>
std::vector<std::vector<Hypothesis>> write_all(const Job& job, const Sources& sources, const OnWritten& on_written,
                                               const Make& make) {
  std::vector<int64_t> lengths, limits;
  for (const auto& source : sources) {
    const auto length = static_cast<int64_t>(source.size());
    lengths.push_back(length + 1);
    limits.push_back(detail::length_limit(job.rules, length, job.model.config().max_length));
  }
  const auto batches = detail::cut_batches(lengths, job.width, job.budget, threads());
  const int64_t room = most_room(batches, job.width, limits);
  std::vector<std::vector<Hypothesis>> results(sources.size());
  for_batches(batches.size(), [&](int64_t n) {
    const std::vector<int64_t>& batch = batches[static_cast<size_t>(n)];
    Sources own;
    std::vector<decltype(make(0, 0))> writers;
    for (const int64_t sentence : batch) {
      own.push_back(sources[static_cast<size_t>(sentence)]);
      own.back().push_back(job.model.config().end);
      writers.push_back(make(sentence, limits[static_cast<size_t>(sentence)]));
    }
    write_batch(job, own, room, writers);
    for (size_t b = 0; b < batch.size(); ++b) {
      const auto source = static_cast<size_t>(batch[b]);
      results[source] = writers[b].results();
      if (on_written) on_written(source, results[source]);
    }
  });
  return results;
}

}  // namespace

std::vector<std::vector<Hypothesis>> search(const Transformer& model, const Sources& sources,
                                            const SearchOptions& options, const OnWritten& on_written) {
  detail::check_options(options);
  check_sources("search", model, sources);
  const Job job{model, options.rules, options.batch.compute, options.beam, options.batch.tokens};
  return write_all(job, sources, on_written,
                   [&](int64_t, int64_t limit) { return detail::Beam(options, limit, model.config().end); });
}

std::vector<std::vector<Hypothesis>> sample(const Transformer& model, const Sources& sources,
                                            const SamplingOptions& options, const OnWritten& on_written) {
  detail::check_options(options);
  check_sources("sample", model, sources);
  const Job job{model, options.rules, options.batch.compute, options.samples, options.batch.tokens};
  check(options.numbers.empty() || options.numbers.size() == sources.size(),
        "sample: {} numbers of {} sources; expected one for each, or none", options.numbers.size(), sources.size());
  return write_all(job, sources, on_written, [&](int64_t sentence, int64_t limit) {
    const uint64_t number = options.numbers.empty() ? options.first_sentence + static_cast<uint64_t>(sentence)
                                                    : options.numbers[static_cast<size_t>(sentence)];
    return detail::Sampler(options, number, limit, model.config().end);
  });
}

}  // namespace mh
