// Compressed files: what gzip and xz wrote is read, whatever its name; damage and other compressions are named.
#include "multihead/io/unpack.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using namespace std::string_literals;

const std::string kText = "one\teins\ntwo\tzwei\n";
// Of that text: `gzip -n9` 1.12 and `xz -0` 5.4.1.
const std::string kGzip =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\xcf\x4b\xe5\x4c\xcd\xcc\x2b\xe6\x2a\x29\xcf\xe7\xac\x2a\x4f\xcd\xe4"
    "\x02\x00"
    "\x28\x56\xca\x4f\x12\x00\x00\x00"s;
const std::string kXz =
    "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x0c\x00\x00\x00\x8f\x98\x41\x9c\x01\x00\x11\x6f"
    "\x6e\x65"
    "\x09\x65\x69\x6e\x73\x0a\x74\x77\x6f\x09\x7a\x77\x65\x69\x0a\x00\x00\x00\x4f\x71\xca\x1d\x7d\xd1\x06\x6d\x00\x01"
    "\x2a\x12"
    "\x4b\x08\x54\xbc\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a"s;

class Unpack : public testing::Test {
 protected:
  std::string read(const std::string& bytes, const std::string& name = "text.tsv") const {
    put_text(folder_ / name, bytes);
    const detail::FileBytes file = detail::read_unpacked(folder_ / name);
    return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
  }
  Refusal refused(const std::string& bytes) const {
    return refusal_of([&] { read(bytes); });
  }
  TemporaryFolder folder_;
};

TEST_F(Unpack, ContentTellsNotTheName) {
  EXPECT_EQ(read(kGzip), kText);
  EXPECT_EQ(read(kXz), kText);
  EXPECT_EQ(read(kGzip, "text.xz"), kText);
  EXPECT_EQ(read(kText, "text.gz"), kText);
  for (const std::string& text : {""s, "\x1f"s, "\x1f\x8b"s, "BZh is German"s, "PK\n"s}) EXPECT_EQ(read(text), text);
}

TEST_F(Unpack, MembersFollowOneAnother) {
  EXPECT_EQ(read(kGzip + kGzip + kGzip), kText + kText + kText);
  EXPECT_EQ(read(kXz + kXz), kText + kText);
  EXPECT_EQ(read(kGzip + std::string(512, '\0')), kText);  // as tapes pad
}

TEST_F(Unpack, MoreThanFitsAtOnceIsWhole) {
  std::string text;
  for (int64_t i = 0; i < 300'000; ++i) text += "line " + std::to_string(i * 7919 % 300'007) + "\n";
  const std::string path = folder_ / "long.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
  EXPECT_TRUE(read(text_of(path)) == text);
}

TEST_F(Unpack, DamageIsSaid) {
  for (const std::string& whole : {kGzip, kXz}) {
    for (size_t bytes = 10; bytes < whole.size(); ++bytes) {
      const Refusal refusal = refused(whole.substr(0, bytes));
      EXPECT_EQ(refusal.kind, ErrorKind::io) << bytes;
      EXPECT_TRUE(refusal.says("end early")) << refusal.sentence;
    }
  }
  std::string flipped = kGzip;
  flipped[30] ^= 1;  // of the sum
  EXPECT_TRUE(refused(flipped).says("text.tsv': its gzip data are damaged")) << refused(flipped).sentence;
  flipped = kXz;
  flipped[30] ^= 1;  // of the text
  EXPECT_TRUE(refused(flipped).says("text.tsv': its xz data are damaged")) << refused(flipped).sentence;
  EXPECT_TRUE(refused(kGzip + "one").says("are followed by something else"));
  EXPECT_EQ(refused(kGzip + kXz).kind, ErrorKind::io);
}

TEST_F(Unpack, OtherCompressionsAreRefusedByName) {
  const std::pair<std::string, std::string> others[] = {{"\x28\xb5\x2f\xfd\x04\x00"s, "zstd"},
                                                        {"BZh91AY&SY\x01"s, "bzip2"},
                                                        {"\x04\x22\x4d\x18\x64"s, "lz4"},
                                                        {"PK\x03\x04\x14\x00"s, "zip"}};
  for (const auto& [bytes, name] : others) {
    EXPECT_EQ(refused(bytes).kind, ErrorKind::unsupported) << name;
    EXPECT_TRUE(refused(bytes).says("it is compressed with " + name + "; expected text, gzip or xz"));
  }
}

}  // namespace
}  // namespace mh
