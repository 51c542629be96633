// Named entities read from tags of tokens, and their F1.
#include "multihead/metrics/entities.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"

namespace mh {

namespace {

struct Tag {
  std::string_view letter;
  std::string_view type;

  bool is_one_of(std::string_view letters) const {
    return letter.size() == 1 && letters.find(letter.front()) != std::string_view::npos;
  }
};

// The letter is one character; the type stands behind the first hyphen, or behind the letter where there is none.
Tag parse(std::string_view text) {
  size_t letter = 1;
  while (letter < text.size() && (static_cast<unsigned char>(text[letter]) & 0xC0) == 0x80) ++letter;
  std::string_view type = text.substr(letter);
  if (const size_t hyphen = type.find('-'); hyphen != std::string_view::npos) type.remove_prefix(hyphen + 1);
  return {.letter = text.substr(0, letter), .type = type.empty() ? "_" : type};
}

bool ends_between(const Tag& before, const Tag& now) {
  return before.is_one_of("ES") || (before.is_one_of("BI") && now.is_one_of("BSO")) ||
         (!before.is_one_of("O.") && before.type != now.type);
}

bool begins_between(const Tag& before, const Tag& now) {
  return now.is_one_of("BS") || (before.is_one_of("ESO") && now.is_one_of("EI")) ||
         (!now.is_one_of("O.") && before.type != now.type);
}

// Reads tags one by one; what follows the last must be an "O".
class TagReader {
 public:
  void read(std::string_view text) {
    const Tag now = parse(text);
    if (ends_between(before_, now))
      found_.push_back({.type = std::string(before_.type), .first = first_, .last = at_ - 1});
    if (begins_between(before_, now)) first_ = at_;
    before_ = now;
    ++at_;
  }
  std::vector<Entity> found() && { return std::move(found_); }

 private:
  Tag before_{.letter = "O", .type = ""};
  int64_t at_ = 0, first_ = 0;
  std::vector<Entity> found_;
};

void check_tags(const std::vector<std::string>& tags) {
  for (size_t i = 0; i < tags.size(); ++i)
    check(!tags[i].empty(), "entities: tag {} is empty; expected a letter and a type such as B-PER, or O", i + 1);
}

// Of all sentences, an "O" behind each.
std::vector<Entity> sorted_entities(const std::vector<std::vector<std::string>>& sentences) {
  TagReader reader;
  for (const std::vector<std::string>& tags : sentences) {
    check_tags(tags);
    for (const std::string& tag : tags) reader.read(tag);
    reader.read("O");
  }
  std::vector<Entity> out = std::move(reader).found();
  std::sort(out.begin(), out.end());
  return out;
}

double share_of(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace

std::vector<Entity> entities(const std::vector<std::string>& tags) {
  check_tags(tags);
  TagReader reader;
  for (const std::string& tag : tags) reader.read(tag);
  reader.read("O");
  return std::move(reader).found();
}

EntityScores entity_scores(const std::vector<std::vector<std::string>>& predictions,
                           const std::vector<std::vector<std::string>>& references) {
  check(predictions.size() == references.size(),
        "entity_scores: predictions for {} sentences and references for {}; expected the same number",
        predictions.size(), references.size());
  for (size_t i = 0; i < predictions.size(); ++i)
    check(predictions[i].size() == references[i].size(),
          "entity_scores: sentence {} has {} predicted tags and {} references; expected the same number", i + 1,
          predictions[i].size(), references[i].size());

  const std::vector<Entity> ours = sorted_entities(predictions), theirs = sorted_entities(references);
  std::vector<Entity> both;
  std::set_intersection(ours.begin(), ours.end(), theirs.begin(), theirs.end(), std::back_inserter(both));
  EntityScores out{.right = static_cast<int64_t>(both.size()),
                   .predicted = static_cast<int64_t>(ours.size()),
                   .expected = static_cast<int64_t>(theirs.size())};
  out.precision = share_of(static_cast<double>(out.right), static_cast<double>(out.predicted));
  out.recall = share_of(static_cast<double>(out.right), static_cast<double>(out.expected));
  out.f1 = share_of(2 * out.precision * out.recall, out.precision + out.recall);
  return out;
}

}  // namespace mh
