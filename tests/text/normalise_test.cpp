// Normalisation and lower-casing, of whole and of broken text.
#include "multihead/text/normalise.h"

#include <gtest/gtest.h>

#include <string>

namespace mh::detail {
namespace {

TEST(Normalise, ComposesAndFolds) {
  EXPECT_EQ(normalise("e\u0301", Normalisation::nfc), "\u00e9");
  EXPECT_EQ(normalise("\u212b\ufb01\u00b2", Normalisation::nfc), "\u00c5\ufb01\u00b2");
  EXPECT_EQ(normalise("\u212b\ufb01\u00b2", Normalisation::nfkc),
            "\u00c5"
            "fi2");
  EXPECT_EQ(normalise("e\u0301", Normalisation::none), "e\u0301");
  EXPECT_EQ(normalise("", Normalisation::nfkc), "");
}

TEST(Normalise, BrokenBytesStayAndPartTheText) {
  EXPECT_EQ(normalise("e\u0301\xff"
                      "e\u0301",
                      Normalisation::nfc),
            "\u00e9\xff\u00e9");
  EXPECT_EQ(normalise("e\xff\u0301", Normalisation::nfc), "e\xff\u0301");
  EXPECT_EQ(normalise("\xe2\x82", Normalisation::nfkc), "\xe2\x82");
  EXPECT_EQ(normalise("\xff\xfe\ufb01\x80", Normalisation::nfkc),
            "\xff\xfe"
            "fi\x80");
}

TEST(Normalise, AMillionBrokenBytesTakeNoTime) {
  const std::string broken(1000000, '\xff');
  EXPECT_EQ(normalise(broken, Normalisation::nfc), broken);
}

TEST(Lowercase, EachCharacterByItself) {
  EXPECT_EQ(lowercase("ABC xyz ÄÖÜß 1!"), "abc xyz äöüß 1!");
  EXPECT_EQ(lowercase("ΟΔΟΣ"), "οδοσ");       // a final sigma would look around itself
  EXPECT_EQ(lowercase("\u0130"), "i\u0307");  // the one that becomes two
  EXPECT_EQ(lowercase("\U00010400"), "\U00010428");
  EXPECT_EQ(lowercase("A\xff\xe2\x82"
                      "B"),
            "a\xff\xe2\x82"
            "b");
}

}  // namespace
}  // namespace mh::detail
