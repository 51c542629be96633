// Headers broken in every place: each is refused with a sentence, or means what it says.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "multihead/io/safetensors.h"
#include "multihead/io/safetensors_bytes.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

constexpr size_t kData = 24;

// The header is that of two tensors and a text, with every kind of token that a header has.
const std::string kHeader =
    R"({"__metadata__":{"a":"b\u00e9"},"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("y":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]}})";

std::string headed(const std::string& header, uint64_t length) {
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header + std::string(kData, '\1');
}

// Whether the bytes are refused in one line; what is read can be written and read again and is the same.
bool refused_or_sound(const std::string& bytes, std::set<std::string>& sentences) {
  try {
    const Safetensors file = parse_safetensors(std::as_bytes(std::span(bytes)), "f");
    int64_t covered = 0;
    for (const auto& [name, tensor] : file.tensors) covered += tensor.count() * size_of(tensor.dtype());
    std::string again;
    const detail::SafetensorsBytes written = detail::serialise(file);
    for (const std::span<const std::byte> part : written.parts())
      again.append(reinterpret_cast<const char*>(part.data()), part.size());
    const Safetensors back = parse_safetensors(std::as_bytes(std::span(again)), "again");
    return covered == static_cast<int64_t>(kData) && back.metadata == file.metadata &&
           back.tensors.size() == file.tensors.size();
  } catch (const Error& error) {
    const std::string sentence = error.what();
    sentences.insert(sentence);
    return (error.kind() == ErrorKind::io || error.kind() == ErrorKind::unsupported) &&
           sentence.starts_with("safetensors: 'f': ") && sentence.find('\n') == std::string::npos;
  }
}

TEST(SafetensorsHeaders, EveryBrokenOneIsRefusedOrMeansWhatItSays) {
  std::set<std::string> sentences;
  ASSERT_TRUE(refused_or_sound(headed(kHeader, kHeader.size()), sentences));
  ASSERT_TRUE(sentences.empty());
  const auto expect_sound = [&](const std::string& header, const char* how, size_t at) {
    EXPECT_TRUE(refused_or_sound(headed(header, header.size()), sentences)) << how << " at " << at << ": " << header;
  };
  const std::string characters = "{}[]\",:-.0129eE \\/u\n\x01\x7f\x80\xff";
  for (size_t at = 0; at < kHeader.size(); ++at) {
    expect_sound(kHeader.substr(0, at), "cut", at);
    expect_sound(std::string(kHeader).erase(at, 1), "left out", at);
    expect_sound(std::string(kHeader).insert(at, 1, kHeader[at]), "doubled", at);
    if (at + 1 < kHeader.size()) {
      std::string swapped = kHeader;
      std::swap(swapped[at], swapped[at + 1]);
      expect_sound(swapped, "swapped", at);
    }
    for (const char other : characters) {
      std::string replaced = kHeader;
      replaced[at] = other;
      expect_sound(replaced, "replaced", at);
    }
  }
  EXPECT_GT(sentences.size(), 100u) << "the faults have sentences of their own";
}

TEST(SafetensorsHeaders, EveryWrongLengthIsRefused) {
  std::set<std::string> sentences;
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{8}}) {
    for (const uint64_t wrong :
         {kHeader.size() - length, kHeader.size() + length, kHeader.size() + kData + length, ~uint64_t{0} - length,
          (uint64_t{1} << 63) + length, (uint64_t{1} << 32) + length, length}) {
      if (wrong == kHeader.size()) continue;
      const std::string bytes = headed(kHeader, wrong);
      EXPECT_TRUE(refused_or_sound(bytes, sentences)) << wrong;
      EXPECT_THROW(parse_safetensors(std::as_bytes(std::span(bytes)), "f"), Error) << wrong;
    }
  }
}

// Numbers in the place of each number of the header.
TEST(SafetensorsHeaders, NumbersOfEverySizeAreRefusedOrFit) {
  std::set<std::string> sentences;
  const char* numbers[] = {"-1",
                           "0",
                           "1",
                           "3",
                           "24",
                           "25",
                           "2147483647",
                           "2147483648",
                           "4294967296",
                           "4611686018427387904",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551615",
                           "18446744073709551616",
                           "1e400",
                           "1.0",
                           "1e0",
                           "null",
                           "true",
                           "\"1\"",
                           "[]",
                           "{}",
                           "-0",
                           "007"};
  for (size_t at = 0; at < kHeader.size(); ++at) {
    const size_t end = std::min(kHeader.find_first_not_of("0123456789", at), kHeader.size());
    if (end == at || kHeader[at - 1] == 'F' || kHeader.substr(at - 1, 1).find_first_of("[,") == std::string::npos)
      continue;
    for (const char* number : numbers) {
      const std::string header = kHeader.substr(0, at) + number + kHeader.substr(end);
      EXPECT_TRUE(refused_or_sound(headed(header, header.size()), sentences)) << header;
    }
  }
  EXPECT_GT(sentences.size(), 20u);
}

}  // namespace
}  // namespace mh
