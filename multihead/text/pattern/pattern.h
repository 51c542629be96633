// The regular expressions of tokenizer.json: compiled once, matched within a limit of steps.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/pattern/code_ranges.h"
#include "multihead/text/pattern/syntax.h"

namespace mh::detail {

// Of alternatives the first that leads to a match wins, as in Oniguruma. Never changes: any thread may match with it.
class Pattern {
 public:
  static constexpr size_t kNone = ~size_t{0};
  static constexpr size_t kBeyondAscii = 128;  // stands for all first bytes from there on

  // Throws: as parse_pattern; unsupported also for a pattern that an empty text matches, and one that is too large.
  Pattern(std::string_view source, const std::string& where);

  // Calls each(begin, end) for every match, from left to right; none is empty. `text` is UTF-8. The time is linear in
  // the text for the patterns of GPT-2, GPT-4, GPT-4o, Llama, Qwen and CLIP. Throws: invalid_argument where a pattern
  // goes back and forth so long that it is not.
  template <class Each>
  void each_match(std::string_view text, Each&& each) const {
    uint64_t steps = steps_for(text);
    for (size_t at = 0; at < text.size();) {
      const auto byte = static_cast<uint8_t>(text[at]);
      if (!first_[byte < kBeyondAscii ? byte : kBeyondAscii]) {
        ++at;
        continue;
      }
      const size_t end = match_at(text, at, steps);
      if (end == kNone) {
        do ++at;
        while (at < text.size() && (text[at] & 0xc0) == 0x80);
      } else {
        each(at, end);
        at = end;
      }
    }
  }

 private:
  friend class Matcher;

  enum class Op : uint8_t { set, loop, alternatives, split, jump, ahead, not_ahead, atomic, match };
  struct Instruction {
    Op op;
    PatternNode::Mode mode = PatternNode::Mode::greedy;
    uint32_t a = 0, b = 0, c = 0;  // set: a; loop: a from b to c times; split: a, else b; ahead: what is at a, then b
  };
  // Alternatives as bits: which of them may begin with a byte. All bytes beyond ASCII count as one.
  struct Choice {
    std::array<uint32_t, 129> viable{};
    std::vector<uint32_t> targets;
  };

  static uint64_t steps_for(std::string_view text);
  size_t match_at(std::string_view text, size_t at, uint64_t& steps) const;

  uint32_t add(Instruction instruction);
  uint32_t add_set(const CodeRanges& set);
  void compile(const PatternNode& node);
  void compile_repeat(const PatternNode& node);
  void compile_alternatives(const PatternNode& node);
  void compile_inside(const PatternNode& node, Op op);

  std::string where_;
  std::array<bool, 129> first_{};  // by first byte: whether a match may begin with it
  std::vector<Instruction> program_;
  std::vector<CodeTable> sets_;
  std::vector<CodeRanges> ranges_;  // of the sets
  std::vector<Choice> choices_;
};

}  // namespace mh::detail
