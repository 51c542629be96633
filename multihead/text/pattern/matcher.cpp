// The steps of matching, and the way back.
#include "multihead/text/pattern/matcher.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

template <class T>
std::vector<T>& stack_of_thread() {
  thread_local std::vector<T> stack;
  return stack;
}

}  // namespace

Matcher::Matcher(const Pattern& pattern, std::string_view text, uint64_t& steps)
    : pattern_(pattern), text_(text), steps_(steps), stack_(stack_of_thread<Back>()), base_(stack_.size()) {}

size_t Matcher::run(uint32_t from, size_t at) {
  here_ = from;
  at_ = at;
  while (true) {
    const Pattern::Instruction& now = pattern_.program_[here_];
    if (now.op == Pattern::Op::match) return at_;
    check(steps_ > 0, "{}: the pattern takes too many steps on this text", pattern_.where_);
    --steps_;
    if (!step(now) && !go_back()) return kNone;
  }
}

bool Matcher::step(const Pattern::Instruction& now) {
  switch (now.op) {
    case Pattern::Op::set:
      if (at_ == text_.size() || !pattern_.sets_[now.a].contains(next_character(text_, at_))) return false;
      ++here_;
      return true;
    case Pattern::Op::loop: return loop(now);
    case Pattern::Op::alternatives: return choose(now);
    case Pattern::Op::split:
      stack_.push_back({Back::Kind::go, now.b, at_, 0});
      here_ = now.a;
      return true;
    case Pattern::Op::jump: here_ = now.a; return true;
    case Pattern::Op::ahead: here_ = now.b; return inside(now) != kNone;
    case Pattern::Op::not_ahead: here_ = now.b; return inside(now) == kNone;
    case Pattern::Op::atomic:
      here_ = now.b;
      at_ = inside(now);
      return at_ != kNone;
    case Pattern::Op::match: return true;
  }
  return false;
}

size_t Matcher::inside(const Pattern::Instruction& now) { return Matcher(pattern_, text_, steps_).run(now.a, at_); }

bool Matcher::loop(const Pattern::Instruction& now) {
  const CodeTable& set = pattern_.sets_[now.a];
  const bool lazy = now.mode == PatternNode::Mode::lazy;
  const uint32_t most = lazy ? now.b : now.c;
  const size_t begin = at_;
  size_t least = now.b == 0 ? at_ : kNone;  // where the least number of times ends
  size_t at = at_;
  for (uint32_t times = 0; times < most && at < text_.size();) {
    const auto byte = static_cast<uint8_t>(text_[at]);
    size_t after = at + 1;
    if (byte < Pattern::kBeyondAscii) {
      if (!set.ascii(byte)) break;
    } else {
      after = at;
      if (!set.contains(next_character(text_, after))) break;
    }
    at = after;
    if (++times == now.b) least = at;
  }
  steps_ -= std::min<uint64_t>(steps_, (at - begin) / 8);
  if (least == kNone) return false;
  ++here_;
  if (lazy && now.c > now.b)
    stack_.push_back({Back::Kind::longer, here_, at, now.c == kUnlimited ? kNone : now.c - now.b});
  if (now.mode == PatternNode::Mode::greedy && at > least && pattern_.program_[here_].op != Pattern::Op::match)
    stack_.push_back({Back::Kind::shorter, here_, at, least});
  at_ = at;
  return true;
}

bool Matcher::choose(const Pattern::Instruction& now) {
  const Pattern::Choice& choice = pattern_.choices_[now.a];
  uint32_t viable = 0;
  if (at_ < text_.size()) {
    viable = choice.viable[std::min<size_t>(static_cast<uint8_t>(text_[at_]), Pattern::kBeyondAscii)];
  } else {
    viable = (uint32_t{2} << (choice.targets.size() - 1)) - 1;
  }
  if (viable == 0) return false;
  const uint32_t others = viable & (viable - 1);
  if (others != 0) stack_.push_back({Back::Kind::others, here_, at_, others});
  here_ = choice.targets[static_cast<size_t>(__builtin_ctz(viable))];
  return true;
}

bool Matcher::go_back() {
  while (stack_.size() > base_)
    if (go_back_to(stack_.back())) return true;
  return false;
}

bool Matcher::go_back_to(Back& back) {
  here_ = back.here;
  at_ = back.at;
  switch (back.kind) {
    case Back::Kind::go: stack_.pop_back(); return true;
    case Back::Kind::others: {
      const auto left = static_cast<uint32_t>(back.limit);
      here_ = pattern_.choices_[pattern_.program_[here_].a].targets[static_cast<size_t>(__builtin_ctz(left))];
      back.limit = left & (left - 1);
      if (back.limit == 0) stack_.pop_back();
      return true;
    }
    case Back::Kind::shorter:
      do --at_;
      while (U8_IS_TRAIL(text_[at_]));
      back.at = at_;
      if (at_ == back.limit) stack_.pop_back();
      return true;
    case Back::Kind::longer: {
      const Pattern::Instruction& again = pattern_.program_[here_ - 1];
      const bool more = at_ < text_.size() && pattern_.sets_[again.a].contains(next_character(text_, at_));
      back.at = at_;
      if (!more || (back.limit != kNone && --back.limit == 0)) stack_.pop_back();
      return more;
    }
  }
  return false;
}

}  // namespace mh::detail
