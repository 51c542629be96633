// Spellings of languages' tokens.
#include "multihead/generate/text/languages.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"

namespace mh::detail {

namespace {

constexpr size_t kShown = 6;  // names in a refusal

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
template <class Fits>
bool all(std::string_view text, Fits&& fits) {
  return std::all_of(text.begin(), text.end(), fits);
}

// deu_Latn, de_DE, en_XX.
bool is_locale(std::string_view token) {
  const size_t at = token.find('_');
  if (at < 2 || at > 3 || at == std::string_view::npos || !all(token.substr(0, at), is_lower)) return false;
  const std::string_view behind = token.substr(at + 1);
  const bool country = behind.size() == 2 && all(behind, is_upper);
  return country || (at == 3 && behind.size() == 4 && is_upper(behind[0]) && all(behind.substr(1), is_lower));
}

std::string_view between(std::string_view token, std::string_view open, std::string_view close) {
  const size_t marks = open.size() + close.size();
  if (token.size() <= marks || !token.starts_with(open) || !token.ends_with(close)) return {};
  return token.substr(open.size(), token.size() - marks);
}

}  // namespace

Languages::Languages(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string& token = tokenizer.token(id);
    const std::string_view leading = between(token, ">>", "<<");
    lead_ |= !leading.empty();
    if (!leading.empty()) {
      tokens_.emplace(leading, id);
    } else if (tokenizer.is_special(id)) {
      const std::string_view underlined = between(token, "__", "__");
      if (!underlined.empty() && all(underlined, is_lower)) tokens_.emplace(underlined, id);
      if (is_locale(token)) tokens_.emplace(token, id);
    }
  }
}

std::vector<std::string> Languages::names() const {
  std::vector<std::string> out;
  for (const auto& [name, id] : tokens_) out.push_back(name);
  return out;
}

bool Languages::has(int32_t id) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const auto& each) { return each.second == id; });
}

int32_t Languages::token(std::string_view name) const {
  for (const auto& [open, close] : {std::pair{"", ""}, {"__", "__"}, {">>", "<<"}}) {
    const auto found = tokens_.find(between(name, open, close));
    if (found != tokens_.end()) return found->second;
  }
  std::vector<std::string> alike, some;
  int32_t only = -1;
  for (const auto& [known, id] : tokens_) {
    if (known.starts_with(std::string(name) + "_")) only = id, alike.push_back(known);
    if (some.size() < kShown) some.push_back(known);
  }
  if (alike.size() == 1) return only;
  if (!alike.empty())
    fail(ErrorKind::invalid_argument, "translator: the language {} may be any of {}; expected one of them",
         printable(name), fmt::join(alike, ", "));
  std::vector<std::string> near;
  for (const auto& [known, id] : tokens_)
    if (near.size() < kShown && name.size() > 1 && known.starts_with(name.substr(0, 2))) near.push_back(known);
  fail(ErrorKind::invalid_argument, "translator: the model knows no language {}; expected one of its {}, such as {}",
       printable(name), tokens_.size(), fmt::join(near.empty() ? some : near, ", "));
}

}  // namespace mh::detail
