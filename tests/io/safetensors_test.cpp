// Safetensors: what others wrote is read, what we write is read back, what breaks a rule is refused.
#include "multihead/io/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

const std::string kGolden = MH_TEST_DATA "/io/golden/";

Safetensors parse(const std::string& bytes) { return parse_safetensors(std::as_bytes(std::span(bytes)), "a file"); }

// A file of this header with so many bytes (1, 2, 3, …) behind it.
std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  out += header;
  for (size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i + 1);
  return out;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.view().data, b.view().data, static_cast<size_t>(a.count() * size_of(a.dtype()))) == 0;
}

TEST(Safetensors, ReadsEveryTypeThatPythonWrites) {
  const Safetensors file = read_safetensors(kGolden + "types.safetensors");
  EXPECT_EQ(file.tensors.size(), 12u);
  const std::pair<const char*, DType> types[] = {{"F32", DType::f32}, {"BF16", DType::bf16}, {"F16", DType::f16},
                                                 {"F64", DType::f64}, {"I8", DType::i8},     {"U8", DType::u8},
                                                 {"I32", DType::i32}, {"I64", DType::i64},   {"BOOL", DType::boolean}};
  for (const auto& [name, dtype] : types) {
    const Tensor& x = file.tensors.at(std::string("of ") + name);
    EXPECT_EQ(x.dtype(), dtype);
    ASSERT_TRUE(x.shape() == Shape({2, 3})) << name;
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(x.item({i / 3, i % 3}), dtype == DType::boolean ? static_cast<double>(i > 0) : static_cast<double>(i));
  }
  EXPECT_EQ(file.tensors.at("scalar").item({}), 2.5);
  EXPECT_TRUE(file.tensors.at("without elements").shape() == Shape({3, 0, 2}));
  const Tensor& special = file.tensors.at("Größe \"1\"\n");
  EXPECT_EQ(special.item({0}), static_cast<double>(1e-3f));
  EXPECT_EQ(special.item({1}), INFINITY);
  EXPECT_TRUE(std::signbit(special.item({2})));
  EXPECT_EQ(file.metadata,
            (std::map<std::string, std::string>{{"format", "pt"}, {"note", "as Python writes it: é, \"quoted\""}}));
}

TEST(Safetensors, ReadsAFileOfNothing) {
  const Safetensors file = read_safetensors(kGolden + "nothing.safetensors");
  EXPECT_TRUE(file.tensors.empty());
  EXPECT_TRUE(file.metadata.empty());
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const Safetensors golden = read_safetensors(kGolden + "types.safetensors");
  write_safetensors(folder / "again.safetensors", golden);
  const Safetensors again = read_safetensors(folder / "again.safetensors");
  EXPECT_EQ(again.metadata, golden.metadata);
  ASSERT_EQ(again.tensors.size(), golden.tensors.size());
  for (const auto& [name, tensor] : golden.tensors) EXPECT_TRUE(same_bytes(again.tensors.at(name), tensor)) << name;
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Safetensors, TheSameTensorsGiveTheSameBytesAndLieAligned) {
  const TemporaryFolder folder;
  const Safetensors golden = read_safetensors(kGolden + "types.safetensors");
  write_safetensors(folder / "a", golden);
  write_safetensors(folder / "b", parse(text_of(folder / "a")));
  EXPECT_EQ(text_of(folder / "a"), text_of(folder / "b"));
  uint64_t length = 0;
  std::memcpy(&length, text_of(folder / "a").data(), sizeof length);
  EXPECT_EQ((length + sizeof length) % 64, 0u);
  // Nothing but the file's own mapping: no tensor had to be copied to an aligned place.
  const Safetensors mapped = read_safetensors(folder / "a");
  const auto address = [&](const char* name) {
    return static_cast<const std::byte*>(mapped.tensors.at(name).view().data);
  };
  EXPECT_EQ(address("of I64") - address("of F64"), 48);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(address("of F64")) % 64, 0u);
}

TEST(Safetensors, WritesStridedTensorsDensely) {
  const TemporaryFolder folder;
  const Tensor x = tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  write_safetensors(
      folder / "file",
      {.tensors = {{"t", x.transpose(0, 1)}, {"wide", x.select(0, 0).broadcast_to({2, 3})}}, .metadata = {}});
  const Safetensors file = read_safetensors(folder / "file");
  EXPECT_TRUE(same_bytes(file.tensors.at("t"), tensor<float>({0, 3, 1, 4, 2, 5}, {3, 2})));
  EXPECT_TRUE(same_bytes(file.tensors.at("wide"), tensor<float>({0, 1, 2, 0, 1, 2}, {2, 3})));
}

TEST(Safetensors, CopiesWhatIsNotAligned) {
  const Safetensors file =
      parse(file_of("{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "I32", "[1]", "[1,5]") + "}", 5));
  EXPECT_EQ(file.tensors.at("b").data<int32_t>()[0], 0x05040302);
}

TEST(Safetensors, TensorsOutliveTheirFileAndNeverChangeIt) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_safetensors(path, {.tensors = {{"x", tensor<float>({1, 2, 3}, {3})}}, .metadata = {}});
  const std::string before = text_of(path);
  const Tensor x = read_safetensors(path).tensors.at("x");
  x.data<float>()[1] = 7;
  EXPECT_EQ(text_of(path), before);
  std::filesystem::remove(path);
  EXPECT_EQ(x.item({0}), 1);
  EXPECT_EQ(x.item({1}), 7);
}

TEST(Safetensors, AFileMayBeReplacedByTensorsThatPointIntoIt) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_safetensors(path, {.tensors = {{"x", tensor<float>({1, 2, 3}, {3})}}, .metadata = {}});
  Safetensors file = read_safetensors(path);
  file.metadata["more"] = std::string(1000, 'm');
  write_safetensors(path, file);
  EXPECT_EQ(read_safetensors(path).tensors.at("x").item({2}), 3);
}

struct Hostile {
  const char* rule;
  std::string bytes;
  const char* sentence;  // a part of it
};

// "{}" with a length that says so many bytes more.
std::string overrun(char more) {
  std::string file = file_of("{}", 0);
  file[0] = static_cast<char>(file[0] + more);
  return file;
}

std::vector<Hostile> hostile_files() {
  const std::string x = entry("x", "U8", "[4]", "[0,4]");
  std::string long_header = file_of("{}", 0);
  long_header[7] = '\x7f';
  std::string longest_header = file_of("{}", 0);
  const uint64_t past = 100'000'001;
  std::memcpy(longest_header.data(), &past, sizeof past);
  return {
      {"no bytes", "", "0 bytes are too few for such a file"},
      {"half a length", std::string(7, '\0'), "7 bytes are too few for such a file"},
      {"header of 2^63", long_header, "expected at most 100000000"},
      {"header of 100 MB and 1", longest_header, "expected at most 100000000"},
      {"header past the end", file_of("{" + x + "}", 4).substr(0, 20), "cut short"},
      {"header 1 byte past the end", overrun(1), "a header of 3 bytes in a file of 10; the file is cut short"},
      {"header 8 bytes past the end", overrun(8), "a header of 10 bytes in a file of 10; the file is cut short"},
      {"no header", file_of("", 0), "does not begin with '{'"},
      {"space first", file_of(" {}", 0), "does not begin with '{'"},
      {"a list", file_of("[]", 0), "does not begin with '{'"},
      {"broken JSON", file_of("{\"x\":", 0), "no JSON"},
      {"two objects", file_of("{}{}", 0), "no JSON"},
      {"zeros behind", file_of("{}" + std::string(2, '\0'), 0), "no JSON"},
      {"not UTF-8", file_of("{\"\xff\":1}", 0), "no JSON"},
      {"deep", file_of("{\"x\":" + std::string(5000, '[') + std::string(5000, ']') + "}", 0), "no JSON"},
      {"no object", file_of("{\"x\":3}", 0), "'x' is not an object"},
      {"twice", file_of("{" + x + "," + x + "}", 4), "'x' stands twice"},
      {"no dtype", file_of(R"({"x":{"shape":[4],"data_offsets":[0,4]}})", 4), "'x' lacks dtype"},
      {"no shape", file_of(R"({"x":{"dtype":"U8","data_offsets":[0,4]}})", 4), "'x' lacks shape"},
      {"no offsets", file_of(R"({"x":{"dtype":"U8","shape":[4]}})", 4), "'x' lacks data_offsets"},
      {"field twice", file_of(R"({"x":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4),
       "'dtype' twice"},
      {"another field", file_of(R"({"x":{"dtype":"U8","stride":1,"shape":[4],"data_offsets":[0,4]}})", 4), "'stride'"},
      {"dtype no text", file_of(R"({"x":{"dtype":8,"shape":[4],"data_offsets":[0,4]}})", 4), "dtype of tensor 'x'"},
      {"shape no list", file_of("{" + entry("x", "U8", "4", "[0,4]") + "}", 4), "shape of tensor 'x' is not a list"},
      {"negative size", file_of("{" + entry("x", "U8", "[-4]", "[0,4]") + "}", 4), "whole number"},
      {"fractional size", file_of("{" + entry("x", "U8", "[4.0]", "[0,4]") + "}", 4), "whole number"},
      {"size of text", file_of("{" + entry("x", "U8", "[\"4\"]", "[0,4]") + "}", 4), "whole number"},
      {"size of 2^63", file_of("{" + entry("x", "U8", "[9223372036854775808]", "[0,4]") + "}", 4), "whole number"},
      {"product of sizes", file_of("{" + entry("x", "U8", "[4294967296,4294967296]", "[0,0]") + "}", 0), "overflows"},
      {"bytes", file_of("{" + entry("x", "F64", "[2305843009213693952]", "[0,0]") + "}", 0), "overflows"},
      {"beside a 0", file_of("{" + entry("x", "U8", "[0,4294967296,4294967296]", "[0,0]") + "}", 0), "overflows"},
      {"one offset", file_of("{" + entry("x", "U8", "[4]", "[4]") + "}", 4), "1 data_offsets"},
      {"three offsets", file_of("{" + entry("x", "U8", "[4]", "[0,4,4]") + "}", 4), "3 data_offsets"},
      {"backwards", file_of("{" + entry("x", "U8", "[4]", "[4,0]") + "}", 4), "before it begins"},
      {"too many bytes", file_of("{" + entry("x", "U8", "[3]", "[0,4]") + "}", 4), "has 4 bytes; expected 3"},
      {"too few bytes", file_of("{" + entry("x", "F32", "[2]", "[0,4]") + "}", 4), "has 4 bytes; expected 8"},
      {"overlap", file_of("{" + x + "," + entry("y", "U8", "[4]", "[2,6]") + "}", 6), "expected 4, where"},
      {"the same place", file_of("{" + x + "," + entry("y", "U8", "[4]", "[0,4]") + "}", 4), "expected 4, where"},
      {"hole", file_of("{" + x + "," + entry("y", "U8", "[1]", "[5,6]") + "}", 6), "begins at byte 5"},
      {"hole at the start", file_of("{" + entry("x", "U8", "[4]", "[1,5]") + "}", 5), "begins at byte 1"},
      {"data missing", file_of("{" + x + "}", 3), "cut short"},
      {"data behind", file_of("{" + x + "}", 5), "longer than it says"},
      {"metadata no object", file_of(R"({"__metadata__":[]})", 0), "__metadata__ is not an object"},
      {"metadata no text", file_of(R"({"__metadata__":{"a":1}})", 0), "'a' is not text"},
      {"metadata name twice", file_of(R"({"__metadata__":{"a":"1","a":"1"}})", 0), "'a' stands twice"},
      {"metadata twice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "'__metadata__' stands twice"},
      {"bools", file_of("{" + entry("x", "BOOL", "[2]", "[0,2]") + "}", 2), "neither 0 nor 1"},
      {"a name that moves the cursor", file_of("{\"\\n\\u001b[2J\\u009b\":3}", 0),
       "'\\x0a\\x1b[2J\\xc2\\x9b' is not an object"},
  };
}

TEST(Safetensors, RefusesWhatBreaksARuleInOneSentence) {
  for (const Hostile& each : hostile_files()) {
    const Refusal refusal = refusal_of([&] { parse(each.bytes); });
    EXPECT_TRUE(refusal.says(each.sentence)) << each.rule << ": " << refusal.sentence;
    EXPECT_TRUE(refusal.says("safetensors: 'a file': ")) << each.rule << ": " << refusal.sentence;
    EXPECT_EQ(refusal.kind, ErrorKind::io) << each.rule;
    EXPECT_EQ(refusal.sentence.find('\n'), std::string::npos) << each.rule;
  }
}

TEST(Safetensors, RefusesEveryCutOfAFile) {
  const std::string whole = text_of(kGolden + "types.safetensors");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(refusal_of([&] { parse(whole.substr(0, length)); }).kind, ErrorKind::io) << length;
}

TEST(Safetensors, NamesTheTypesAndRanksItHasNot) {
  const Refusal refusal = refusal_of([] { read_safetensors(kGolden + "int16.safetensors"); });
  EXPECT_EQ(refusal.kind, ErrorKind::unsupported);
  EXPECT_TRUE(refusal.says("tensor 'short' has elements of type 'I16'; expected one of F32, BF16,"))
      << refusal.sentence;
  EXPECT_TRUE(refusal.says("int16.safetensors'")) << refusal.sentence;

  const Refusal rank = refusal_of([] { parse(file_of("{" + entry("x", "U8", "[1,1,1,1,1,1,1]", "[0,1]") + "}", 1)); });
  EXPECT_EQ(rank.kind, ErrorKind::unsupported);
  EXPECT_TRUE(rank.says("'x' has 7 axes; expected at most 6")) << rank.sentence;
}

TEST(Safetensors, RefusesFilesThatAreNone) {
  const TemporaryFolder folder;
  const Refusal missing = refusal_of([&] { read_safetensors(folder / "missing"); });
  EXPECT_TRUE(missing.says("missing': No such file or directory")) << missing.sentence;
  const Refusal directory = refusal_of([&] { read_safetensors(folder.path()); });
  EXPECT_TRUE(directory.says("it is a folder")) << directory.sentence;
  const Refusal device = refusal_of([] { read_safetensors("/dev/zero"); });
  EXPECT_TRUE(device.says("a device")) << device.sentence;
  put_text(folder / "empty", "");
  const Refusal empty_file = refusal_of([&] { read_safetensors(folder / "empty"); });
  EXPECT_TRUE(empty_file.says("0 bytes are too few for such a file")) << empty_file.sentence;
}

TEST(Safetensors, RefusesToWriteWhatCannotBeReadBack) {
  const TemporaryFolder folder;
  const Tensor x = tensor<float>({1}, {1});
  const std::pair<Safetensors, const char*> wrong[] = {
      {{.tensors = {{"x", Tensor()}}, .metadata = {}}, "tensor 'x' is empty"},
      {{.tensors = {{"__metadata__", x}}, .metadata = {}}, "named __metadata__"},
      {{.tensors = {{"\xff", x}}, .metadata = {}}, "'\\xff' is not UTF-8"},
      {{.tensors = {}, .metadata = {{"a", "\xc3"}}}, "not UTF-8"},
  };
  for (const auto& [file, part] : wrong) {
    const Refusal refusal = refusal_of([&] { write_safetensors(folder / "file", file); });
    EXPECT_EQ(refusal.kind, ErrorKind::invalid_argument);
    EXPECT_TRUE(refusal.says(part)) << refusal.sentence;
  }
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace mh
