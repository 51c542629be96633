// The stem of an English word: suffixes are replaced in five steps, where enough of the word is left before them.
#include "multihead/metrics/porter_stem.h"

#include <cstddef>
#include <string_view>
#include <utility>

namespace mh::detail {

namespace {

bool is_consonant(std::string_view word, size_t at) {
  if (word[at] != 'y') return std::string_view("aeiou").find(word[at]) == std::string_view::npos;
  // In a run of y they take turns, from the letter before it on.
  size_t first = at;
  while (first > 0 && word[first] == 'y') --first;
  const bool turned = (at - first) % 2 == 1;
  const bool start = word[first] == 'y' || is_consonant(word, first);
  return start != turned;
}

// How often a vowel is followed by a consonant.
int measure(std::string_view stem) {
  int out = 0;
  bool vowel = false, before = true;  // before: the letter before was a consonant
  for (size_t i = 0; i < stem.size(); ++i) {
    const bool consonant = stem[i] == 'y' ? i == 0 || !before : is_consonant(stem, i);
    if (consonant && vowel) ++out;
    vowel = !consonant;
    before = consonant;
  }
  return out;
}

bool has_vowel(std::string_view stem) {
  for (size_t i = 0; i < stem.size(); ++i)
    if (!is_consonant(stem, i)) return true;
  return false;
}

bool ends_in_double_consonant(std::string_view word) {
  const size_t size = word.size();
  return size >= 2 && word[size - 1] == word[size - 2] && is_consonant(word, size - 1);
}

// Consonant, vowel, consonant other than w, x, y, as in "hop"; or the whole is a vowel and a consonant.
bool ends_short(std::string_view word) {
  const size_t size = word.size();
  if (size < 2 || is_consonant(word, size - 2) || !is_consonant(word, size - 1)) return false;
  if (size == 2) return true;
  return is_consonant(word, size - 3) && std::string_view("wxy").find(word.back()) == std::string_view::npos;
}

bool cut(std::string_view& word, std::string_view suffix) {
  if (!word.ends_with(suffix)) return false;
  word.remove_suffix(suffix.size());
  return true;
}

using Rule = std::pair<std::string_view, std::string_view>;

// The first rule whose suffix fits decides: it is applied where the rest measures more than `more`.
template <size_t count>
std::string apply(const Rule (&rules)[count], int more, std::string word) {
  for (const auto& [suffix, replacement] : rules) {
    std::string_view stem = word;
    if (!cut(stem, suffix)) continue;
    return measure(stem) > more ? std::string(stem) + std::string(replacement) : word;
  }
  return word;
}

std::string without_plural(std::string word) {
  if (word.ends_with("ies")) return word.substr(0, word.size() - (word.size() == 4 ? 1 : 2));
  if (word.ends_with("sses")) return word.substr(0, word.size() - 2);
  if (word.ends_with("s") && !word.ends_with("ss")) word.pop_back();
  return word;
}

std::string without_past(std::string word) {
  if (word.ends_with("ied")) return word.substr(0, word.size() - (word.size() == 4 ? 1 : 2));
  std::string_view rest = word;
  if (cut(rest, "eed")) return measure(rest) > 0 ? std::string(rest) + "ee" : word;
  if (!(cut(rest, "ed") || cut(rest, "ing")) || !has_vowel(rest)) return word;

  std::string stem(rest);
  if (stem.ends_with("at") || stem.ends_with("bl") || stem.ends_with("iz")) return stem + "e";
  if (ends_in_double_consonant(stem)) {
    if (std::string_view("lsz").find(stem.back()) == std::string_view::npos) stem.pop_back();
    return stem;
  }
  return measure(stem) == 1 && ends_short(stem) ? stem + "e" : stem;
}

std::string with_i_for_y(std::string word) {
  if (word.size() > 2 && word.back() == 'y' && is_consonant(word, word.size() - 2)) word.back() = 'i';
  return word;
}

std::string without_double_suffix(std::string word) {
  static constexpr Rule kRules[] = {
      {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
      {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
      {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
      {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
      {"fulli", "ful"},
  };
  // "-ally" is "-al", which may have a suffix of this step before it.
  std::string_view stem = word;
  if (cut(stem, "alli") && measure(stem) > 0) return without_double_suffix(std::string(stem) + "al");
  // The l counts as the stem's, so that "geology" is as "archaeology".
  stem = word;
  if (stem.ends_with("logi"))
    return measure(stem.substr(0, stem.size() - 3)) > 0 ? word.substr(0, word.size() - 1) : word;
  return apply(kRules, 0, std::move(word));
}

std::string without_adjective(std::string word) {
  static constexpr Rule kRules[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                                    {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
  return apply(kRules, 0, std::move(word));
}

std::string without_last_suffix(std::string word) {
  static constexpr Rule kRules[] = {{"al", ""},   {"ance", ""}, {"ence", ""},  {"er", ""},   {"ic", ""},  {"able", ""},
                                    {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ou", ""},
                                    {"ism", ""},  {"ate", ""},  {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""}};
  // The s or t of "-sion", "-tion" belongs to what is measured.
  if (word.ends_with("sion") || word.ends_with("tion"))
    return measure(std::string_view(word).substr(0, word.size() - 3)) > 1 ? word.substr(0, word.size() - 3) : word;
  return apply(kRules, 1, std::move(word));
}

std::string tidied(std::string word) {
  if (word.ends_with("e")) {
    const std::string_view stem = std::string_view(word).substr(0, word.size() - 1);
    if (const int m = measure(stem); m > 1 || (m == 1 && !ends_short(stem))) word.pop_back();
  }
  if (word.ends_with("ll") && measure(std::string_view(word).substr(0, word.size() - 1)) > 1) word.pop_back();
  return word;
}

}  // namespace

std::string porter_stem(std::string word) {
  static constexpr Rule kIrregular[] = {
      {"sky", "sky"},        {"skies", "sky"},       {"dying", "die"},        {"lying", "lie"},
      {"tying", "tie"},      {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},
      {"outings", "outing"}, {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"},
      {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}};
  for (const auto& [form, stem] : kIrregular)
    if (word == form) return std::string(stem);
  if (word.size() <= 2) return word;
  word = with_i_for_y(without_past(without_plural(std::move(word))));
  return tidied(without_last_suffix(without_adjective(without_double_suffix(std::move(word)))));
}

}  // namespace mh::detail
