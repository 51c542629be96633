// A pattern as a tree: what its text says, before it is made to run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/pattern/code_ranges.h"

namespace mh::detail {

struct PatternNode {
  enum class Kind { set, sequence, alternatives, repeat, ahead, not_ahead, atomic } kind = Kind::sequence;
  enum class Mode { greedy, lazy, possessive } mode = Mode::greedy;
  CodeRanges set{};  // of a set: one character that is in it
  std::vector<PatternNode> children{};
  uint32_t min = 1, max = 1;  // of a repeat; kUnlimited
};

constexpr uint32_t kUnlimited = ~uint32_t{0};

// Reads the syntax of Oniguruma as far as tokenizers use it: alternatives, groups, (?i:), (?=), (?!), (?>), ? * + {m,n}
// with ? and +, \s \S \w \W \d \D \p{..} \P{..} \r \n \t, and classes with sets inside and &&. Throws, beginning with
// `where`: unsupported for anything else, by name; invalid_argument for what is not a pattern.
PatternNode parse_pattern(std::string_view source, const std::string& where);

// Whether nothing at all can match it.
bool may_be_empty(const PatternNode& node);

}  // namespace mh::detail
