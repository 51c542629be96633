// The matching of a compiled pattern at one place of a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "multihead/text/pattern/pattern.h"

namespace mh::detail {

// Goes forward as long as it can, and back by a stack of its own.
class Matcher {
 public:
  Matcher(const Pattern& pattern, std::string_view text, uint64_t& steps);
  ~Matcher() { stack_.resize(base_); }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Where the match ends that begins at `at` with the instruction `from`; kNone where there is none.
  size_t run(uint32_t from, size_t at);

 private:
  // A place to go back to.
  struct Back {
    enum class Kind : uint8_t { go, shorter, longer, others } kind;
    uint32_t here;
    size_t at,
        limit;  // shorter: not before `limit`; longer: `limit` more times; others: the alternatives left, as bits
  };

  static constexpr size_t kNone = Pattern::kNone;

  bool step(const Pattern::Instruction& now);  // false where it does not match
  bool loop(const Pattern::Instruction& now);
  bool choose(const Pattern::Instruction& now);
  bool go_back();  // false where there is no place left
  bool go_back_to(Back& back);
  size_t inside(const Pattern::Instruction& now);

  const Pattern& pattern_;
  std::string_view text_;
  uint64_t& steps_;
  std::vector<Back>& stack_;  // a thread's; ours begins at `base_`
  size_t base_;
  uint32_t here_ = 0;
  size_t at_ = 0;
};

}  // namespace mh::detail
