// How bytes are spelled.
#include "multihead/text/pipeline/models/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "multihead/text/unicode/utf8.h"

namespace mh::detail {
namespace {

TEST(ByteAlphabet, EveryByteHasACharacterOfItsOwn) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(std::set<std::string>(byte_characters().begin(), byte_characters().end()).size(), 256u);
  const std::string spelled = spell_bytes(all);
  EXPECT_EQ(utf8_error(spelled), std::nullopt);
  EXPECT_EQ(read_bytes(spelled), all);
}

TEST(ByteAlphabet, CharactersAreThoseOfGpt2) {
  EXPECT_EQ(spell_bytes("A~ \n\t"), "A~ĠĊĉ");
  EXPECT_EQ(spell_bytes(std::string("\0\x7f\xa0\xad\xff", 5)), "ĀġłŃÿ");
  EXPECT_EQ(bytes_by_character().front(), '!');
  EXPECT_EQ(bytes_by_character().back(), 0xad);
}

TEST(ByteAlphabet, OtherCharactersStandForNoByte) {
  EXPECT_EQ(read_bytes("a b"), std::nullopt);
  EXPECT_EQ(read_bytes("\u0144"), std::nullopt);  // one past the last
  EXPECT_EQ(read_bytes("\u00ad"), std::nullopt);
  EXPECT_EQ(read_bytes("😀"), std::nullopt);
  EXPECT_EQ(read_bytes("\xff"), std::nullopt);
  EXPECT_EQ(read_bytes(""), "");
}

}  // namespace
}  // namespace mh::detail
