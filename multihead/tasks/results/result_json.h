// What the verbs say of a text as JSON, one value on one line: --json of the program, and the results of the C ABI.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "multihead/generate/text/text_generator.h"
#include "multihead/generate/text/translator.h"
#include "multihead/tasks/verbs/answerer.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tasks/verbs/filler.h"
#include "multihead/tasks/verbs/tagger.h"

namespace mh {

// Characters of the UTF-8 text before this byte.
int64_t characters_before(std::string_view text, size_t byte);

// The numbers of the labels, most probable first; of equals the smaller number.
std::vector<size_t> by_score(const Classification& one);

// {"label", "score"}, and where `labels` has the names of all "scores" by name, most probable first.
std::string to_json(const Classification& one, std::span<const std::string> labels = {});

// [{"begin", "end", "label", "score", "text"}, …], begin and end in characters.
std::string to_json(const Tagging& found, const std::string& text);

// {"answer", "score", "begin", "end"}, begin and end in characters of the context.
std::string to_json(const Answer& one, const std::string& context);

// Of each gap [{"token", "id", "score", "text"}, …].
std::string to_json(const Filled& found);

// {"line", "prompt", "text", "tokens", "ended", "score"}.
std::string to_json(const Continuation& written, const std::string& prompt, int64_t line);

// {"line", "text", "tokens", "source_tokens", "cut", "ended", "score"} of the best candidate.
std::string summary_to_json(const Translation& summary, int64_t line);

// Where a candidate stands; both count from 1.
struct CandidatePlace {
  int64_t line = 1, rank = 1;
  bool cut = false;
};

// {"line", "rank", "text", "score", "cut"}.
std::string to_json(const Candidate& candidate, const CandidatePlace& place);

// The same, with "tokens": [{"text", "log_p"}, …] and "alignment": [[source word, target word], …] by what a decoder
// layer, counted from 0, looked at. Throws: as Translator::cross_attention.
std::string to_json(const Candidate& candidate, const CandidatePlace& place, const Translator& translator,
                    int64_t layer);

}  // namespace mh
