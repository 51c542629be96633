// Merging: the order of merges, and two ways with one outcome.
#include "multihead/text/merges.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace mh::detail {
namespace {

using Tokens = std::vector<int32_t>;

std::vector<Symbol> symbols_of(std::string_view word) {
  std::vector<Symbol> out;
  for (const char c : word) out.push_back({static_cast<uint8_t>(c), 1});
  return out;
}

Tokens tokens_of(const std::vector<Symbol>& word) {
  Tokens out;
  for (const Symbol& symbol : word) out.push_back(symbol.token);
  return out;
}

Tokens encoded(const Merges& merges, std::string_view word) {
  std::vector<Symbol> symbols = symbols_of(word);
  merges.merge(symbols);
  uint32_t bytes = 0;
  for (const Symbol& symbol : symbols) bytes += symbol.bytes;
  EXPECT_EQ(bytes, word.size());
  return tokens_of(symbols);
}

// By the definition: look at every pair, merge the best one, begin again.
Tokens by_definition(const std::vector<Merge>& ranked, std::string_view word) {
  Tokens tokens;
  for (const char c : word) tokens.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best = ranked.size(), at = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i)
      for (size_t rank = 0; rank < best; ++rank)
        if (ranked[rank].pair == Pair{tokens[i], tokens[i + 1]}) {
          best = rank;
          at = i;
        }
    if (best == ranked.size()) return tokens;
    tokens[at] = ranked[best].result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Merges, TheEarlierMergeComesFirst) {
  const Merges merges(std::vector<Merge>{{{'b', 'c'}, 256}, {{'a', 'b'}, 257}, {{'a', 256}, 258}});
  EXPECT_EQ(encoded(merges, "abc"), (Tokens{258}));
  EXPECT_EQ(encoded(merges, "ab"), (Tokens{257}));
  EXPECT_EQ(encoded(merges, "abbc"), (Tokens{257, 256}));
  EXPECT_EQ(encoded(merges, ""), Tokens{});
  EXPECT_EQ(encoded(merges, "x"), Tokens{'x'});
}

TEST(Merges, OfEqualsTheLeftmostComesFirst) {
  const Merges merges(std::vector<Merge>{{{'a', 'a'}, 256}});
  EXPECT_EQ(encoded(merges, "aaa"), (Tokens{256, 'a'}));
  EXPECT_EQ(encoded(merges, "aaaaa"), (Tokens{256, 256, 'a'}));
}

TEST(Merges, OfAPairListedTwiceTheLastPlaceCounts) {
  const Merges merges(std::vector<Merge>{{{'a', 'b'}, 256}, {{'b', 'c'}, 257}, {{'a', 'b'}, 256}});
  EXPECT_EQ(encoded(merges, "abc"), (Tokens{'a', 257}));
}

TEST(Merges, BothWaysFollowTheDefinition) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<int32_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    // Any list, also one in which a later token is part of an earlier merge.
    std::vector<Merge> ranked;
    const int32_t tokens = 4 + below(12);
    for (int32_t i = 0, count = 1 + below(30); i < count; ++i) {
      const auto pick = [&] { return below(3) == 0 ? 256 + below(static_cast<size_t>(tokens)) : 'a' + below(3); };
      const Pair pair{pick(), pick()};
      bool listed = false;
      for (const Merge& merge : ranked) listed = listed || merge.pair == pair;
      if (!listed) ranked.push_back({pair, 256 + below(static_cast<size_t>(tokens))});
    }
    const Merges merges(ranked);
    std::string word;
    for (int32_t i = 0, count = below(Merges::kShort + 1); i < count; ++i)
      word.push_back(static_cast<char>('a' + below(3)));
    std::vector<Symbol> briefly = symbols_of(word), queued = briefly;
    merges.merge_short(briefly);
    merges.merge_long(queued);
    EXPECT_EQ(tokens_of(briefly), by_definition(ranked, word)) << word;
    EXPECT_EQ(tokens_of(queued), tokens_of(briefly)) << word;
  }
}

TEST(Merges, AWordOfAMillionBytesIsDoneSoon) {
  const Merges merges(std::vector<Merge>{{{'a', 'a'}, 256}, {{256, 256}, 257}, {{257, 257}, 258}});
  EXPECT_EQ(encoded(merges, std::string(1000001, 'a')).size(), 125001u);
}

}  // namespace
}  // namespace mh::detail
