// Named entities read from tags of tokens (BIO, IOB2, IOBES), and their F1; equal to seqeval's (1.2, its default mode).
//
// A tag is a letter and a type: B-PER begins an entity, I-PER goes on with it, E-PER ends it, S-PER is one alone, O is
// outside. Nothing is refused, as conlleval does not: an I after O, or of another type than the tag before, begins an
// entity.
//
//   precision = right / predicted     recall = right / expected     F1 = 2 precision recall / (precision + recall)
//
// An entity is right where its type, first and last token are. A quotient of zeros is 0.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace mh {

struct Entity {
  std::string type;             // "_" where the tag is a letter alone
  int64_t first = 0, last = 0;  // tokens, both inside
  auto operator<=>(const Entity&) const = default;
};

struct EntityScores {
  double precision = 0, recall = 0, f1 = 0;
  int64_t right = 0, predicted = 0, expected = 0;  // entities of all types together
};

// In the order in which they end. Throws: invalid_argument where a tag is empty.
std::vector<Entity> entities(const std::vector<std::string>& tags);

// predictions[i] and references[i] are the tags of sentence i.
// Throws: invalid_argument where the numbers of sentences or of a sentence's tags differ, or a tag is empty.
EntityScores entity_scores(const std::vector<std::vector<std::string>>& predictions,
                           const std::vector<std::vector<std::string>>& references);

}  // namespace mh
