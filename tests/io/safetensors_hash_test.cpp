// The hash that a file carries of its own bytes: whatever changes, the file is refused.
#include <gtest/gtest.h>

#include <cstring>

#include "multihead/io/safetensors.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

constexpr const char* kDamaged = "the file is damaged: its bytes differ from the hash";

// A header with these digits, and four bytes of data.
std::string hashed_file(const std::string& digits, const std::string& key = "multihead.xxh3") {
  const std::string header =
      R"({"__metadata__":{")" + key + R"(":")" + digits + R"("},"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  const uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header + "\1\2\3\4";
}

Safetensors parsed(const std::string& bytes) { return parse_safetensors(std::as_bytes(std::span(bytes)), "a file"); }

TEST(SafetensorsHash, IsThatOfAllBytesButItsOwnDigits) {
  // By Python's xxhash: xxh3_128_hexdigest of the file without its 32 digits.
  const Safetensors file = parsed(hashed_file("3ffd4f8dcfc0a900f8ed2c2ec06e8302"));
  EXPECT_TRUE(file.hashed);
  EXPECT_TRUE(file.metadata.empty());
  EXPECT_TRUE(refusal_of([] { parsed(hashed_file(std::string(32, '0'))); }).says(kDamaged));
  EXPECT_TRUE(refusal_of([] { parsed(hashed_file("short")); }).says(kDamaged));
  // Spelled with an escape, the key is in the metadata but not where it is looked for.
  EXPECT_TRUE(refusal_of([] {
                parsed(hashed_file("3ffd4f8dcfc0a900f8ed2c2ec06e8302", "multihead.xxh\\u0033"));
              }).says(kDamaged));
}

TEST(SafetensorsHash, EveryChangedByteIsFound) {
  const TemporaryFolder folder;
  write_safetensors(folder / "file", {.tensors = {{"x", tensor<float>({1, 2}, {2})}, {"y", full({3}, 1, DType::i8)}},
                                      .metadata = {{"a", "b"}}});
  const std::string whole = text_of(folder / "file");
  ASSERT_TRUE(parsed(whole).hashed);
  const size_t key = whole.find("multihead.xxh3");
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string altered = whole;
      altered[at] = static_cast<char>(altered[at] ^ (1 << bit));
      const Refusal refusal = refusal_of([&] { EXPECT_FALSE(parsed(altered).hashed); });
      // Only where the hash has lost its own name does the file look like that of another program; all else is as it
      // was.
      const bool in_key = at >= key && at < key + std::strlen("multihead.xxh3");
      EXPECT_TRUE(in_key || refusal.kind == ErrorKind::io || refusal.kind == ErrorKind::unsupported)
          << "byte " << at << " bit " << bit;
    }
  }
}

TEST(SafetensorsHash, AMappedFileIsCheckedUnlessToldNotTo) {
  const TemporaryFolder folder;
  write_safetensors(folder / "file", {.tensors = {{"x", tensor<float>({1, 2}, {2})}}, .metadata = {{"a", "b"}}});
  std::string altered = text_of(folder / "file");
  altered.back() = static_cast<char>(altered.back() ^ 1);
  put_text(folder / "file", altered);
  const Refusal refusal = refusal_of([&] { read_safetensors(folder / "file"); });
  EXPECT_EQ(refusal.kind, ErrorKind::io);
  EXPECT_TRUE(refusal.says("safetensors: '" + (folder / "file") + "': " + kDamaged)) << refusal.sentence;
  EXPECT_TRUE(refusal.says("has to drop multihead.xxh3 from its metadata")) << refusal.sentence;
  const Safetensors unchecked = read_safetensors(folder / "file", {.verify = false});
  EXPECT_TRUE(unchecked.hashed);
  EXPECT_EQ(unchecked.metadata, (std::map<std::string, std::string>{{"a", "b"}}));
}

TEST(SafetensorsHash, FilesOfOthersHaveNone) {
  EXPECT_FALSE(read_safetensors(MH_TEST_DATA "/io/golden/types.safetensors").hashed);
}

TEST(SafetensorsHash, AFileThatIsChangedAndWrittenAgainGetsAnother) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {.tensors = {{"x", tensor<float>({1, 2}, {2})}}, .metadata = {{"a", "b"}}});
  Safetensors file = read_safetensors(folder / "a");
  file.tensors["x"] = tensor<float>({1, 3}, {2});
  write_safetensors(folder / "b", file);
  EXPECT_TRUE(read_safetensors(folder / "b").hashed);
  const auto digits = [&](const char* name) {
    const std::string text = text_of(folder / name);
    return text.substr(text.find("multihead.xxh3") + 17, 32);
  };
  EXPECT_NE(digits("a"), digits("b"));
}

}  // namespace
}  // namespace mh
