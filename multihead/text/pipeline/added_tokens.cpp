// The search for added tokens.
#include "multihead/text/pipeline/added_tokens.h"

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/cut.h"

namespace mh::detail {
namespace {

bool is_word(uint32_t c) {
  static const CodeSet set(kWordBesideToken);
  return set.contains(c);
}

size_t previous(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && U8_IS_TRAIL(text[at]));
  return at;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    size_t at = previous(text, begin);
    if (is_word(next_character(text, at))) return true;
  }
  return end < text.size() && is_word(next_character(text, end));
}

// The end of the white space that begins at `at`.
size_t space_end(std::string_view text, size_t at) {
  for (size_t after = at; after < text.size() && is_white_space(next_character(text, after));) at = after;
  return at;
}

// The beginning, not before `least`, of the white space that ends at `at`.
size_t space_begin(std::string_view text, size_t at, size_t least) {
  while (at > least) {
    const size_t before = previous(text, at);
    size_t after = before;
    if (!is_white_space(next_character(text, after))) break;
    at = before;
  }
  return std::max(at, least);
}

}  // namespace

AddedToken read_added_token(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where,
                          {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken out{.content = std::string(fields.string("content"))};
  const int64_t id = fields.integer("id");
  check(!out.content.empty(), "{}: the token of id {} is empty; expected at least one character", where, id);
  check(id >= 0 && id < std::numeric_limits<int32_t>::max(), "{}: the token {} has the id {}; expected 0 to 2^31 - 2",
        where, in_quotes(out.content), id);
  out.id = static_cast<int32_t>(id);
  out.single_word = fields.flag("single_word", false);
  out.lstrip = fields.flag("lstrip", false);
  out.rstrip = fields.flag("rstrip", false);
  out.normalized = fields.flag("normalized", true);
  out.special = fields.flag("special", false);
  return out;
}

AddedTokens::AddedTokens(const std::vector<std::pair<AddedToken, std::string>>& tokens) {
  std::vector<std::pair<std::string, int32_t>> spellings;
  for (const auto& [token, spelling] : tokens) {
    spellings.emplace_back(spelling, static_cast<int32_t>(tokens_.size()));
    tokens_.push_back(token);
    begins_[static_cast<uint8_t>(spelling[0])] = true;
  }
  trie_ = Trie(std::move(spellings));
}

void AddedTokens::cut(std::string_view text, uint32_t begin_of_text, bool find_special, Pieces& out) const {
  const auto place = [&](size_t at) { return begin_of_text + static_cast<uint32_t>(at); };
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !empty();) {
    if (!begins_[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    size_t end = 0;
    int32_t found = -1;
    trie_.each_prefix(text, at, [&](size_t to, int32_t which) {
      end = to;
      found = which;
    });
    if (found < 0) {
      ++at;
      continue;
    }
    size_t begin = at;
    at = end;
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    if (token.special && !find_special) continue;
    if (token.single_word && touches_word(text, begin, end)) continue;
    if (token.lstrip) begin = space_begin(text, begin, std::min(done, begin));
    if (token.rstrip) end = space_end(text, end);
    if (done < begin) out.push_back({place(done), place(begin)});
    out.push_back({place(begin), place(end), token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({place(done), place(text.size())});
}

}  // namespace mh::detail
