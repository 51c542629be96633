// Tokenizers of words and of characters, against Hugging Face's WordLevelTrainer (golden/make_words.py).
#include "multihead/text/train_words.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "multihead/base/error.h"

namespace mh {
namespace {

std::string words_golden(const std::string& name) {
  std::ifstream file(MH_TEST_DATA "/text/golden/" + name, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<std::string> words_lines() {
  std::istringstream text(words_golden("lines.txt"));
  std::vector<std::string> out;
  for (std::string line; std::getline(text, line);) out.push_back(line);
  return out;
}

TEST(TrainWords, TheFileIsTheSame) {
  EXPECT_EQ(train_words(words_lines(), {.vocabulary = 200, .lowercase = true}).json(), words_golden("words.json"));
  EXPECT_EQ(train_words(words_lines(), {.unit = WordUnit::characters, .vocabulary = 60}).json(),
            words_golden("characters.json"));
}

TEST(TrainWords, WordsAndCharactersComeBack) {
  const Tokenizer words = train_words({"the dog the dog a"}),
                  characters = train_words({"abc d"}, {.unit = WordUnit::characters});
  EXPECT_EQ(words.encode(" the  cat\ta "), (std::vector<int32_t>{5, 3, 6}));
  EXPECT_EQ(words.decode(words.encode("a dog")), "a dog");
  EXPECT_EQ(characters.decode(characters.encode("d cab")), "d cab");
  EXPECT_EQ(train_words({"a a b"}, {.min_frequency = 2}).size(), 5);
}

// As [CLS] text [SEP] and [CLS] text [SEP] pair [SEP], the pair with type 1.
TEST(TrainWords, CharactersStandBetweenSpecialsWhereTheyAreWrapped) {
  const WordOptions options{.unit = WordUnit::characters,
                            .specials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"},
                            .unknown = "[UNK]",
                            .wraps = true};
  const Tokenizer tokenizer = train_words({"aab"}, options);  // a is 5, b is 6
  EXPECT_EQ(tokenizer.encode("ab?"), (std::vector<int32_t>{5, 6, 1}));
  EXPECT_EQ(tokenizer.encode_input("ab", {}).ids, (std::vector<int32_t>{2, 5, 6, 3}));
  const Encoded pair = tokenizer.encode_pair("a", "b", {});
  EXPECT_EQ(pair.ids, (std::vector<int32_t>{2, 5, 3, 6, 3}));
  EXPECT_THROW(train_words({"a"}, {.unit = WordUnit::characters, .wraps = true}), Error);
}

TEST(TrainWords, ContradictionsAreRefused) {
  for (const WordOptions& options : {WordOptions{.vocabulary = 3}, WordOptions{.specials = {"a", "a"}, .unknown = "a"},
                                     WordOptions{.unknown = "x"}, WordOptions{.min_frequency = 0}})
    EXPECT_THROW(train_words({"a"}, options), Error);
}

}  // namespace
}  // namespace mh
