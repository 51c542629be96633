// The compiling of a pattern.
#include "multihead/text/pattern/pattern.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/pattern/matcher.h"

namespace mh::detail {
namespace {

using NodeKind = PatternNode::Kind;
using Mode = PatternNode::Mode;

constexpr size_t kLargest = 20000;        // instructions
constexpr uint64_t kStepsOfByte = 200;    // known patterns take fewer than ten
constexpr uint64_t kStepsMore = 1 << 20;  // for short texts
constexpr size_t kMostChoices = 32;

// Which first bytes a node may have: 128 of ASCII, and one for all others. Sets `through` where it may be empty.
void first_bytes(const PatternNode& node, std::array<bool, 129>& out, bool& through) {
  through = false;
  switch (node.kind) {
    case NodeKind::set:
      for (const CodeRange& range : node.set)
        for (uint32_t c = range.first; c <= std::min<uint32_t>(range.last, Pattern::kBeyondAscii); ++c) out[c] = true;
      if (!node.set.empty() && node.set.back().last >= Pattern::kBeyondAscii) out[Pattern::kBeyondAscii] = true;
      return;
    case NodeKind::alternatives:
      for (const PatternNode& child : node.children) {
        bool empty = false;
        first_bytes(child, out, empty);
        through = through || empty;
      }
      return;
    case NodeKind::repeat:
      first_bytes(node.children[0], out, through);
      through = through || node.min == 0;
      return;
    case NodeKind::ahead:
    case NodeKind::not_ahead: through = true; return;
    default:
      through = true;
      for (const PatternNode& child : node.children) {
        first_bytes(child, out, through);
        if (!through) return;
      }
  }
}

}  // namespace

Pattern::Pattern(std::string_view source, const std::string& where) : where_(where) {
  const PatternNode tree = parse_pattern(source, where);
  if (may_be_empty(tree))
    fail(ErrorKind::unsupported, "{}: a pattern that matches nothing at all is not supported", where);
  bool through = false;
  first_bytes(tree, first_, through);
  compile(tree);
  add({.op = Op::match});
  for (Instruction& one : program_)
    while (one.op == Op::jump && (program_[one.a].op == Op::jump || program_[one.a].op == Op::match))
      one = program_[one.a];
  for (const CodeRanges& ranges : ranges_) sets_.emplace_back(ranges);
}

uint32_t Pattern::add(Instruction instruction) {
  if (program_.size() >= kLargest) fail(ErrorKind::unsupported, "{}: a pattern this large is not supported", where_);
  program_.push_back(instruction);
  return static_cast<uint32_t>(program_.size() - 1);
}

uint32_t Pattern::add_set(const CodeRanges& set) {
  const auto same = [&](const CodeRanges& other) {
    return std::equal(other.begin(), other.end(), set.begin(), set.end(),
                      [](const CodeRange& a, const CodeRange& b) { return a.first == b.first && a.last == b.last; });
  };
  const auto found = std::find_if(ranges_.begin(), ranges_.end(), same);
  if (found != ranges_.end()) return static_cast<uint32_t>(found - ranges_.begin());
  ranges_.push_back(set);
  return static_cast<uint32_t>(ranges_.size() - 1);
}

void Pattern::compile(const PatternNode& node) {
  switch (node.kind) {
    case NodeKind::set: add({.op = Op::set, .a = add_set(node.set)}); return;
    case NodeKind::alternatives: compile_alternatives(node); return;
    case NodeKind::repeat: compile_repeat(node); return;
    case NodeKind::ahead: compile_inside(node, Op::ahead); return;
    case NodeKind::not_ahead: compile_inside(node, Op::not_ahead); return;
    case NodeKind::atomic: compile_inside(node, Op::atomic); return;
    case NodeKind::sequence:
      for (const PatternNode& child : node.children) compile(child);
  }
}

// What stands inside is a program of its own that ends in a match.
void Pattern::compile_inside(const PatternNode& node, Op op) {
  const uint32_t here = add({.op = op});
  program_[here].a = here + 1;
  for (const PatternNode& child : node.children) compile(child);
  add({.op = Op::match});
  program_[here].b = static_cast<uint32_t>(program_.size());
}

void Pattern::compile_repeat(const PatternNode& node) {
  const PatternNode& body = node.children[0];
  if (body.kind == NodeKind::set) {
    add({.op = Op::loop, .mode = node.mode, .a = add_set(body.set), .b = node.min, .c = node.max});
    return;
  }
  if (node.mode == Mode::possessive) {
    PatternNode greedy = node;
    greedy.mode = Mode::greedy;
    compile_inside({.kind = NodeKind::atomic, .children = {std::move(greedy)}}, Op::atomic);
    return;
  }
  for (uint32_t i = 0; i < node.min; ++i) compile(body);
  const auto decide = [&] { return add({.op = Op::split}); };
  const auto settle = [&](uint32_t split, uint32_t out) {
    Instruction& at = program_[split];
    at.a = split + 1;
    at.b = out;
    if (node.mode == Mode::lazy) std::swap(at.a, at.b);
  };
  if (node.max == kUnlimited) {
    const uint32_t split = decide();
    compile(body);
    add({.op = Op::jump, .a = split});
    settle(split, static_cast<uint32_t>(program_.size()));
    return;
  }
  std::vector<uint32_t> splits;
  for (uint32_t i = node.min; i < node.max; ++i) {
    splits.push_back(decide());
    compile(body);
  }
  for (const uint32_t split : splits) settle(split, static_cast<uint32_t>(program_.size()));
}

void Pattern::compile_alternatives(const PatternNode& node) {
  if (node.children.size() > kMostChoices)
    fail(ErrorKind::unsupported, "{}: a pattern with {} alternatives is not supported", where_, node.children.size());
  const auto which = static_cast<uint32_t>(choices_.size());
  choices_.emplace_back();
  add({.op = Op::alternatives, .a = which});
  std::vector<uint32_t> jumps;
  for (size_t i = 0; i < node.children.size(); ++i) {
    std::array<bool, 129> first{};
    bool through = false;
    first_bytes(node.children[i], first, through);
    for (size_t byte = 0; byte < first.size(); ++byte)
      if (first[byte] || through) choices_[which].viable[byte] |= 1u << i;
    choices_[which].targets.push_back(static_cast<uint32_t>(program_.size()));
    compile(node.children[i]);
    jumps.push_back(add({.op = Op::jump}));
  }
  for (const uint32_t jump : jumps) program_[jump].a = static_cast<uint32_t>(program_.size());
}

uint64_t Pattern::steps_for(std::string_view text) { return kStepsMore + kStepsOfByte * text.size(); }

size_t Pattern::match_at(std::string_view text, size_t at, uint64_t& steps) const {
  return Matcher(*this, text, steps).run(0, at);
}

}  // namespace mh::detail
