// The loop that writes a batch of texts token by token, and the batches.
#include "multihead/generate/search.h"

#include <algorithm>

#include "multihead/base/parallel.h"
#include "multihead/generate/batches.h"
#include "multihead/generate/beam.h"
#include "multihead/generate/check_options.h"
#include "multihead/generate/rules.h"
#include "multihead/generate/sampler.h"
#include "multihead/ops/rows/softmax.h"

namespace mh {

namespace {

using Sources = Prompts;

void check_sources(const char* op, const Generator::Limits& limits, const Sources& sources) {
  for (size_t n = 0; n < sources.size(); ++n) {
    const auto length = static_cast<int64_t>(sources[n].size());
    check(length <= limits.most,
          "{}: source {} has {} tokens; expected at most {}, the model's length without special tokens", op, n, length,
          limits.most);
    check(length >= limits.fewest, "{}: source {} has {} tokens; expected {} or more", op, n, length, limits.fewest);
    const int64_t vocabulary = limits.prompt_vocabulary > 0 ? limits.prompt_vocabulary : limits.vocabulary;
    for (const int32_t id : sources[n])
      check(id >= 0 && id < vocabulary, "{}: source {} holds the token {}; expected 0 to {}", op, n, id,
            vocabulary - 1);
  }
}

// What a batch is written with: `Writer` is a Beam or a Sampler per sentence.
struct Job {
  const Generator& model;
  Generator::Limits limits;
  const WritingRules& rules;
  DType compute;
  int64_t width;   // hypotheses of a sentence, at most
  int64_t budget;  // tokens of a batch
  RulesOn rules_on;
  const OnToken& on_token;
  std::vector<int32_t> ends;
};

// A sentence that is written.
struct Text {
  size_t number;
  const std::vector<int32_t>& source;
  std::vector<int32_t> prefix;
  int64_t limit;
  size_t told = 0;  // tokens that on_token has heard of
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
void apply_rules(const Job& job, const std::vector<Text>& texts, const std::vector<Writer>& writers,
                 const Tensor& logits) {
  std::vector<int32_t> written, text;
  const auto vocabulary = static_cast<size_t>(logits.size(1));
  float* row = logits.data<float>();
  for (size_t b = 0; b < writers.size(); ++b) {
    for (const detail::Live& hypothesis : writers[b].live()) {
      writers[b].tree().ids_to(hypothesis.node, written);
      text = texts[b].prefix;
      text.insert(text.end(), written.begin(), written.end());
      detail::apply_rules(job.rules,
                          {.text = text,
                           .written = static_cast<int64_t>(written.size()),
                           .source = texts[b].source,
                           .limit = texts[b].limit,
                           .ends = job.ends},
                          {row, vocabulary});
      row += vocabulary;
    }
  }
}

void take_top(std::vector<detail::Beam>& beams, const TopK& top) {
  const int64_t k = top.values.size(1);
  const Tensor best = top.values.to(Device{}), places = top.indices.to(Device{});
  const float* values = best.data<float>();
  const int32_t* tokens = places.data<int32_t>();
  for (detail::Beam& beam : beams) {
    const int64_t used = static_cast<int64_t>(beam.live().size()) * k;
    if (used > 0) beam.advance(values, tokens, k);
    values += used;
    tokens += used;
  }
}

// The k best of log p as the rules left it, which need not sum to 1.
TopK top_of_log_p(const Tensor& log_p, int64_t k) {
  const TopK top = top_k(log_p, k);
  const int32_t* tokens = top.indices.data<int32_t>();
  for (int64_t row = 0, n = 0; row < log_p.size(0); ++row)
    for (int64_t i = 0; i < k; ++i, ++n)
      if (tokens[n] >= 0) top.values.data<float>()[n] = log_p.data<float>()[row * log_p.size(1) + tokens[n]];
  return top;
}

// Every writer one token further; `rows` are those of the hypotheses before the output projection.
void advance(const Job& job, const std::vector<Text>& texts, std::vector<detail::Beam>& beams, const Tensor& rows) {
  const int64_t k = std::min(job.width + static_cast<int64_t>(job.ends.size()), job.limits.vocabulary);
  if (!detail::changes_logits(job.rules)) return take_top(beams, job.model.top(rows, k));
  const Tensor logits = job.model.logits(rows).to(Device{});
  if (job.rules_on == RulesOn::logits) {
    apply_rules(job, texts, beams, logits);
    return take_top(beams, top_k(logits, k));
  }
  const Tensor log_p = log_softmax(logits);
  apply_rules(job, texts, beams, log_p);
  take_top(beams, top_of_log_p(log_p, k));
}

void advance(const Job& job, const std::vector<Text>& texts, std::vector<detail::Sampler>& samplers,
             const Tensor& hidden) {
  const Tensor logits = job.model.logits(hidden).to(Device{});
  if (detail::changes_logits(job.rules)) apply_rules(job, texts, samplers, logits);
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

// Tells of the newest token of every text, of each once.
template <class Writer>
void tell(const Job& job, std::vector<Text>& texts, const std::vector<Writer>& writers) {
  for (size_t b = 0; b < writers.size(); ++b) {
    std::vector<int32_t> ids;
    if (writers[b].live().empty()) {
      ids = writers[b].results().front().ids;
    } else {
      writers[b].tree().ids_to(writers[b].live().front().node, ids);
    }
    for (; texts[b].told < ids.size(); ++texts[b].told) job.on_token(texts[b].number, ids[texts[b].told]);
  }
}

template <class Writer>
void write_batch(const Job& job, int64_t room, std::vector<Text>& texts, std::vector<Writer>& writers) {
  Pass pass = Pass::inference(job.compute);
  Sources sources;
  for (const Text& text : texts) sources.push_back(text.source);
  const std::unique_ptr<Generator::State> state = job.model.begin(sources, room, pass);
  Rows rows{.ids = state->first, .parents = {}, .counts = std::vector<int64_t>(sources.size(), 1)};
  while (!rows.ids.empty()) {
    advance(job, texts, writers, job.model.step(*state, rows.ids, pass));
    if (job.on_token) tell(job, texts, writers);
    gather_rows(writers, rows);
    if (!rows.ids.empty() && !rows.same_as(state->hypotheses())) state->choose(rows.parents, rows.counts);
  }
}

// Batches on threads of their own, or, where there are too few of them, one after the other on all threads.
template <class Body>
void for_batches(size_t count, const Body& body) {
  if (count >= static_cast<size_t>(threads())) return parallel_for(static_cast<int64_t>(count), body);
  for (size_t n = 0; n < count; ++n) body(static_cast<int64_t>(n));
}

// The most room that a batch needs. Every batch takes as much: then it is the same memory again, and none of it comes
// by page faults (Zen 4, greedy: 8 % of the time).
int64_t most_room(const Job& job, const Sources& sources, const std::vector<std::vector<int64_t>>& batches,
                  const std::vector<int64_t>& limits) {
  int64_t most = 0;
  for (const auto& batch : batches) {
    int64_t longest = 0;
    std::vector<int64_t> prompts;
    for (const int64_t sentence : batch) {
      longest = std::max(longest, limits[static_cast<size_t>(sentence)]);
      prompts.push_back(static_cast<int64_t>(sources[static_cast<size_t>(sentence)].size()));
    }
    most = std::max(most, job.model.room(prompts, job.width, longest));
  }
  return most;
}

// The most tokens that may be written for source n.
int64_t limit_of(const char* op, const Job& job, const Sources& sources, size_t n) {
  const auto length = static_cast<int64_t>(sources[n].size());
  const int64_t most = job.model.most_written(length);
  int64_t limit = job.rules.max_length > 0 ? std::min(job.rules.max_length, most) : most;
  if (job.limits.prompt_bounds_length) limit = detail::length_limit(job.rules, length, most);
  if (job.rules.max_text == 0) return limit;
  const auto before = static_cast<int64_t>(job.model.prefix(sources[n]).size());
  check(before < job.rules.max_text, "{}: {} tokens stand before what is written for source {}; expected fewer than {}",
        op, before, n, job.rules.max_text);
  return std::min(limit, job.rules.max_text - before);
}

// make(sentence, limit) gives the writer of one sentence.
template <class Make>
std::vector<std::vector<Hypothesis>> write_all(const char* op, const Job& job, const Sources& sources,
                                               const OnWritten& on_written, const Make& make) {
  std::vector<int64_t> lengths, limits;
  for (size_t n = 0; n < sources.size(); ++n) {
    lengths.push_back(static_cast<int64_t>(sources[n].size()) + 1);
    limits.push_back(limit_of(op, job, sources, n));
  }
  const auto batches = detail::cut_batches(lengths, job.width, job.budget, threads());
  const int64_t room = most_room(job, sources, batches, limits);
  std::vector<std::vector<Hypothesis>> results(sources.size());
  for_batches(batches.size(), [&](int64_t n) {
    const std::vector<int64_t>& batch = batches[static_cast<size_t>(n)];
    std::vector<Text> texts;
    std::vector<decltype(make(0, 0))> writers;
    for (const int64_t sentence : batch) {
      const auto source = static_cast<size_t>(sentence);
      texts.push_back({source, sources[source], job.model.prefix(sources[source]), limits[source]});
      writers.push_back(make(sentence, limits[source]));
    }
    write_batch(job, room, texts, writers);
    for (size_t b = 0; b < batch.size(); ++b) {
      const auto source = static_cast<size_t>(batch[b]);
      results[source] = writers[b].results();
      if (on_written) on_written(source, results[source]);
    }
  });
  return results;
}

void check_forced(const char* op, const WritingRules& rules, int64_t vocabulary) {
  std::vector<int32_t> forced = rules.forced_ends;
  if (rules.forced_begin >= 0) forced.push_back(rules.forced_begin);
  for (const int32_t token : forced)
    check(token >= 0 && token < vocabulary, "{}: the token {} is forced; expected 0 to {}", op, token, vocabulary - 1);
}

// `width`: hypotheses of a sentence, at most.
template <class Options>
Job job_of(const char* op, const Generator& model, const Options& options, int64_t width) {
  detail::check_options(options);
  const Generator::Limits limits = model.limits();
  check_forced(op, options.rules, limits.vocabulary);
  return {.model = model,
          .limits = limits,
          .rules = options.rules,
          .compute = options.batch.compute,
          .width = width,
          .budget = options.batch.tokens,
          .rules_on = RulesOn::logits,
          .on_token = options.on_token,
          .ends = options.rules.ends.empty() ? std::vector<int32_t>{limits.end} : options.rules.ends};
}

}  // namespace

std::vector<std::vector<Hypothesis>> search(const Generator& model, const Sources& sources,
                                            const SearchOptions& options, const OnWritten& on_written) {
  Job job = job_of("search", model, options, options.beam);
  if (options.beam > 1) job.rules_on = options.rules_on;
  check_sources("search", job.limits, sources);
  return write_all("search", job, sources, on_written,
                   [&](int64_t, int64_t limit) { return detail::Beam(options, limit, job.ends); });
}

std::vector<std::vector<Hypothesis>> sample(const Generator& model, const Sources& sources,
                                            const SamplingOptions& options, const OnWritten& on_written) {
  const Job job = job_of("sample", model, options, options.samples);
  check_sources("sample", job.limits, sources);
  check(options.numbers.empty() || options.numbers.size() == sources.size(),
        "sample: {} numbers of {} sources; expected one for each, or none", options.numbers.size(), sources.size());
  return write_all("sample", job, sources, on_written, [&](int64_t sentence, int64_t limit) {
    const uint64_t number = options.numbers.empty() ? options.first_sentence + static_cast<uint64_t>(sentence)
                                                    : options.numbers[static_cast<size_t>(sentence)];
    return detail::Sampler(options, number, limit, job.ends);
  });
}

std::vector<std::vector<Hypothesis>> search(const Transformer& model, const Sources& sources,
                                            const SearchOptions& options, const OnWritten& on_written) {
  return search(TransformerGenerator(model), sources, options, on_written);
}

std::vector<std::vector<Hypothesis>> search(const DecoderOnly& model, const Prompts& prompts,
                                            const SearchOptions& options, const OnWritten& on_written) {
  return search(DecoderOnlyGenerator(model), prompts, options, on_written);
}

std::vector<std::vector<Hypothesis>> sample(const Transformer& model, const Sources& sources,
                                            const SamplingOptions& options, const OnWritten& on_written) {
  return sample(TransformerGenerator(model), sources, options, on_written);
}

std::vector<std::vector<Hypothesis>> sample(const DecoderOnly& model, const Prompts& prompts,
                                            const SamplingOptions& options, const OnWritten& on_written) {
  return sample(DecoderOnlyGenerator(model), prompts, options, on_written);
}

}  // namespace mh
