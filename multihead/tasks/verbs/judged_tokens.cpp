// Windows put together, tokens joined to words, and words to entities, as transformers' TokenClassificationPipeline.
#include "multihead/tasks/verbs/judged_tokens.h"

#include <algorithm>
#include <limits>
#include <span>

#include "multihead/text/unicode/code_set.h"

namespace mh::detail {

namespace {

bool is_white(std::string_view text, size_t at) { return at < text.size() && is_white_space(next_character(text, at)); }

// The beginning of the character before this byte.
size_t before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

TextSpan trimmed(TextSpan span, std::string_view text) {
  while (span.begin < span.end && is_white(text, span.begin)) {
    size_t next = span.begin;
    next_character(text, next);
    span.begin = static_cast<uint32_t>(next);
  }
  while (span.begin < span.end && is_white(text, before(text, span.end)))
    span.end = static_cast<uint32_t>(before(text, span.end));
  return span;
}

// A tag and what it is a tag of: a word, or a token.
struct Judgement {
  TextSpan span{};
  size_t label = 0;
  float score = 0;
};

Judgement best_of(const float* p, size_t labels) {
  const float* best = std::max_element(p, p + labels);
  return {.label = static_cast<size_t>(best - p), .score = *best};
}

// Of the word whose tokens are [begin, end).
Judgement judged(const JudgedTokens& tokens, size_t begin, size_t end, Aggregation how) {
  Judgement out = best_of(tokens.row(begin), tokens.labels);
  if (how == Aggregation::max) {
    for (size_t n = begin + 1; n < end; ++n)
      if (const Judgement one = best_of(tokens.row(n), tokens.labels); one.score > out.score) out = one;
  } else if (how == Aggregation::average) {
    std::vector<float> mean(tokens.labels);
    for (size_t label = 0; label < tokens.labels; ++label) {
      double sum = 0;
      for (size_t n = begin; n < end; ++n) sum += tokens.row(n)[label];
      mean[label] = static_cast<float>(sum / static_cast<double>(end - begin));
    }
    out = best_of(mean.data(), mean.size());
  }
  out.span = {tokens.spans[begin].begin, tokens.spans[end - 1].end};
  return out;
}

// "PER" of "B-PER" and "I-PER"; of other tags all.
std::string_view type_of(std::string_view tag) {
  return tag.starts_with("B-") || tag.starts_with("I-") ? tag.substr(2) : tag;
}

// The judgements [begin, end) as one entity; none where they are outside of any, or white space.
void append_entity(std::vector<TaggedSpan>& out, std::span<const Judgement> parts, std::string_view text,
                   std::string_view label) {
  const TextSpan span = trimmed({parts.front().span.begin, parts.back().span.end}, text);
  if (label == "O" || span.begin >= span.end) return;
  double sum = 0;
  for (const Judgement& each : parts) sum += each.score;
  out.push_back({.label = std::string(label),
                 .begin = span.begin,
                 .end = span.end,
                 .score = static_cast<float>(sum / static_cast<double>(parts.size()))});
}

}  // namespace

void add_window(JudgedTokens& to, const JudgedWindow& window) {
  const std::vector<int8_t>& of = window.tokens.sequences;
  const auto inside = static_cast<size_t>(std::count(of.begin(), of.end(), int8_t{0}));
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  for (size_t row = 0, n = 0; row < of.size(); ++row) {
    if (of[row] != 0) continue;
    const int64_t left = window.begins_text ? kAll : static_cast<int64_t>(n);
    const int64_t right = window.ends_text ? kAll : static_cast<int64_t>(inside - 1 - n);
    const int64_t context = std::min(left, right);
    const float* p = window.p + row * to.labels;
    if (const size_t token = window.first + n++; token == to.spans.size()) {
      to.spans.push_back(window.tokens.offsets[row]);
      to.words.push_back(window.tokens.words[row]);
      to.p.insert(to.p.end(), p, p + to.labels);
      to.context.push_back(context);
    } else if (context > to.context[token]) {
      std::copy(p, p + to.labels, to.p.begin() + static_cast<std::ptrdiff_t>(token * to.labels));
      to.context[token] = context;
    }
  }
}

std::vector<bool> goes_on(const JudgedTokens& tokens, std::string_view text, bool marked) {
  std::vector<bool> out(tokens.spans.size());
  for (size_t n = 1; n < out.size(); ++n) {
    const size_t at = tokens.spans[n].begin;
    const bool parted = at == 0 || text[at - 1] == ' ' || (at < text.size() && text[at] == ' ');
    out[n] = marked ? tokens.words[n] == tokens.words[n - 1] : !parted;
  }
  return out;
}

Tagging aggregated(const JudgedTokens& tokens, const std::vector<bool>& goes_on, std::string_view text,
                   const std::vector<std::string>& labels, Aggregation how) {
  const bool by_token = how == Aggregation::none || how == Aggregation::simple;
  std::vector<Judgement> all;
  for (size_t begin = 0, end = 0; begin < tokens.spans.size(); begin = end) {
    end = begin + 1;
    while (!by_token && end < tokens.spans.size() && goes_on[end]) ++end;
    all.push_back(judged(tokens, begin, end, how));
  }
  Tagging out;
  for (const Judgement& each : all) {
    const TextSpan span = trimmed(each.span, text);
    if (span.begin >= span.end) continue;
    out.words.emplace_back(text.substr(span.begin, span.end - span.begin));
    out.tags.push_back(labels[each.label]);
  }
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const std::string& tag = labels[all[begin].label];
    end = begin + 1;
    if (how == Aggregation::none) {
      append_entity(out.entities, std::span(all).subspan(begin, 1), text, tag);
      continue;
    }
    for (; end < all.size(); ++end) {
      const std::string& next = labels[all[end].label];
      if (next.starts_with("B-") || type_of(next) != type_of(tag)) break;
    }
    const size_t hyphen = tag.find('-');
    append_entity(out.entities, std::span(all).subspan(begin, end - begin), text,
                  hyphen == std::string::npos ? tag : std::string_view(tag).substr(hyphen + 1));
  }
  return out;
}

}  // namespace mh::detail
