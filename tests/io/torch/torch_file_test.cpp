// Files of torch.save: both forms as Python's own pickler writes them, and what is refused before anything is made of
// it.
#include "multihead/io/torch/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

const std::string kFiles = MH_TEST_DATA "/io/golden/state.";

TorchFile read_state(const std::string& bytes) { return parse_torch_file(std::as_bytes(std::span(bytes)), "it.bin"); }
Refusal refused(const std::string& bytes) {
  const Refusal refusal = refusal_of([&] { read_state(bytes); });
  EXPECT_TRUE(refusal.says("'it.bin': ")) << refusal.sentence;
  return refusal;
}

// Little-endian.
template <class T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
std::string text(const std::string& value) { return "X" + number(static_cast<uint32_t>(value.size())) + value; }
std::string integer(int32_t value) { return "J" + number(value); }
std::string tuple(const std::vector<std::string>& parts) {
  std::string out = "(";
  for (const std::string& part : parts) out += part;
  return out + "t";
}
std::string pickle(const std::string& operations) { return "\x80\x02" + operations + "."; }
std::string storage(const std::string& key, int32_t count, const std::string& type = "ctorch\nFloatStorage\n") {
  return tuple({text("storage"), type, text(key), text("cpu"), integer(count), "N"}) + "Q";
}
std::string rebuilt(const std::string& in, int32_t offset, const std::vector<std::string>& sizes,
                    const std::vector<std::string>& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n" +
         tuple({in, integer(offset), tuple(sizes), tuple(strides), "\x89", "}"}) + "R";
}
std::string dictionary(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "}(";
  for (const auto& [name, value] : items) out += text(name) + value;
  return out + "u";
}
// The older form, around a pickle of tensors and the storages behind it: a key and its floats.
std::string stream(const std::string& operations, const std::vector<std::pair<std::string, std::vector<float>>>& data) {
  std::string keys, elements;
  for (const auto& [key, values] : data) {
    keys += text(key);
    elements += number(static_cast<int64_t>(values.size()));
    for (const float value : values) elements += number(value);
  }
  return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15) + pickle("M\xe9\x03") +
         pickle("}" + text("little_endian") + "\x88s") + pickle(operations) + pickle("](" + keys + "e") + elements;
}
std::string one_tensor(const std::string& tensor, const std::vector<float>& values = {1, 2, 3, 4}) {
  return stream(dictionary({{"w", tensor}}), {{"0", values}});
}

std::string changed(std::string bytes, size_t at, const std::string& with) {
  return bytes.replace(at, with.size(), with);
}

TEST(TorchFile, BothFormsGiveEveryTensorOfEveryType) {
  for (const std::string form : {"zip.bin", "stream.bin"}) {
    const TorchFile file = read_torch_file(kFiles + form);
    EXPECT_EQ(file.tensors.size(), 14u) << form;
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i8,
                              DType::u8, DType::boolean}) {
      const Tensor& x = file.tensors.at("of." + std::string(name(dtype)));
      ASSERT_EQ(x.dtype(), dtype) << form;
      ASSERT_EQ(x.shape(), (Shape{3})) << form;
      for (int64_t n = 0; n < 3; ++n)
        EXPECT_EQ(x.item({n}), dtype == DType::boolean ? static_cast<double>((n + 1) % 2) : static_cast<double>(n + 1));
    }
    const Tensor &weight = file.tensors.at("weight"), &turned = file.tensors.at("turned"),
                 &part = file.tensors.at("part");
    ASSERT_EQ(weight.shape(), (Shape{2, 3}));
    ASSERT_EQ(turned.shape(), (Shape{2, 3}));
    ASSERT_EQ(part.shape(), (Shape{2, 2}));
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        EXPECT_EQ(weight.item({i, j}), 1 + 3 * i + j);
        EXPECT_EQ(turned.item({i, j}), 101 + i + 2 * j) << "strides (1, 2)";
      }
      for (int64_t j = 0; j < 2; ++j) EXPECT_EQ(part.item({i, j}), 101 + 8 + 2 * i + j) << "from element 8 on";
    }
    EXPECT_EQ(file.tensors.at("scalar").item({}), 7);
    EXPECT_EQ(file.tensors.at("nothing").shape(), (Shape{0, 4}));
    EXPECT_EQ(file.tied, (std::map<std::string, std::string>{{"tied", "weight"}})) << form;
    EXPECT_EQ(file.left_out, std::vector<std::string>{"steps"}) << form;
  }
}

TEST(TorchFile, HandMadeStreamsAreRead) {
  const TorchFile file = read_state(one_tensor(rebuilt(storage("0", 4), 1, {integer(3)}, {integer(1)})));
  const Tensor& x = file.tensors.at("w");
  ASSERT_EQ(x.shape(), (Shape{3}));
  for (int64_t n = 0; n < 3; ++n) EXPECT_EQ(x.item({n}), static_cast<double>(n + 2));
}

TEST(TorchFile, ACutFileIsRefusedWhereverItEnds) {
  for (const std::string form : {"zip.bin", "stream.bin"}) {
    const std::string whole = text_of(kFiles + form);
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_TRUE(refused(whole.substr(0, size)).kind == ErrorKind::io) << form << " " << size;
  }
}

TEST(TorchFile, ATensorOutsideItsStorageIsRefused) {
  const std::string within = storage("0", 4);
  const std::string huge = integer(1 << 30);
  for (const std::string& tensor :
       {rebuilt(within, 0, {integer(5)}, {integer(1)}), rebuilt(within, 1, {integer(4)}, {integer(1)}),
        rebuilt(within, 0, {integer(2), integer(2)}, {integer(3), integer(1)}),
        rebuilt(within, 0, {huge}, {integer(0)}),  // 4 GiB of one element
        rebuilt(within, 0, {huge, huge, huge}, {integer(0), integer(0), integer(0)}),
        rebuilt(within, 0, {integer(2)}, {std::string("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10)}),
        rebuilt(within, -1, {integer(1)}, {integer(1)})})
    EXPECT_TRUE(refused(one_tensor(tensor)).says("does not fit its storage of 4 elements"));
  EXPECT_TRUE(refused(one_tensor(rebuilt(within, 0, {integer(-1)}, {integer(1)}))).says("no whole numbers from 0 on"));
  EXPECT_TRUE(refused(one_tensor(rebuilt(within, 0, {integer(1)}, {}))).says("1 sizes and 0 strides"));
  EXPECT_TRUE(refused(one_tensor(rebuilt(within, 0, std::vector<std::string>(7, integer(1)),
                                         std::vector<std::string>(7, integer(1)))))
                  .says("has 7 axes"));
}

TEST(TorchFile, AStorageThatClaimsMoreThanTheFileIsRefused) {
  std::string claim =
      stream(dictionary({{"w", rebuilt(storage("0", 2'000'000'000), 0, {integer(1)}, {integer(1)})}}), {{"0", {1}}});
  EXPECT_TRUE(refused(claim).says("another size"));
  claim = changed(claim, claim.size() - 12, number(int64_t{2'000'000'000}));
  EXPECT_TRUE(refused(claim).says("claims 8000000000 bytes where 4 are left"));
  EXPECT_TRUE(
      refused(stream(dictionary({{"w", rebuilt(storage("1", 1), 0, {integer(1)}, {integer(1)})}}), {{"0", {1}}}))
          .says("lists the storage '0'"));
  EXPECT_TRUE(refused(stream(dictionary({{"w", rebuilt(storage("0", 1), 0, {integer(1)}, {integer(1)})}}), {}))
                  .says("the storage '0' is missing"));
}

TEST(TorchFile, TensorsThatOverlapTakeNoMoreThanTheFile) {
  std::vector<std::pair<std::string, std::string>> many;
  for (int n = 0; n < 50; ++n)
    many.emplace_back(std::to_string(n), rebuilt(storage("0", 4000), n, {integer(3900)}, {integer(1)}));
  EXPECT_TRUE(refused(stream(dictionary(many), {{"0", std::vector<float>(4000)}})).says("its tensors overlap"));
}

TEST(TorchFile, WhatIsNoTensorIsRefusedByName) {
  const auto names = [](const std::string& global) { return refused(stream(global + ")R", {})); };
  EXPECT_TRUE(names("cos\nsystem\n").says("names 'os.system'; expected nothing but tensors"));
  EXPECT_TRUE(names("c__builtin__\neval\n").says("'__builtin__.eval'"));
  EXPECT_TRUE(names("ctorch\nload\n").says("'torch.load'"));
  EXPECT_TRUE(names("ctorch.storage\nFloatStorage\n").says("'torch.storage.FloatStorage'"));
  EXPECT_TRUE(names(text("posix") + text("system") + "\x93").says("'posix.system'"));
  EXPECT_TRUE(refused(stream("i", {})).says("the operation 0x69"));      // INST
  EXPECT_TRUE(refused(stream(")\x81", {})).says("the operation 0x81"));  // NEWOBJ
  EXPECT_TRUE(refused(stream("](u", {})).says("sets items of what is no dictionary"));
  EXPECT_TRUE(refused(stream("]", {})).says("holds no dictionary"));
  EXPECT_TRUE(refused(stream("NN", {})).says("ends with 2 values"));
  EXPECT_TRUE(
      refused(one_tensor(rebuilt(storage("0", 4, "ctorch\nShortStorage\n"), 0, {}, {}))).says("torch.ShortStorage"));
  EXPECT_TRUE(refused(one_tensor(rebuilt(storage("0", 4, "ctorch\n\x1b[2JStorage\n"), 0, {}, {})))
                  .says("'torch.\\x1b[2JStorage'"));
  EXPECT_TRUE(refused("PK is how a zip begins").says("is no file of torch.save"));
}

TEST(TorchFile, TheMachineKeepsWhatIsBelowAMarkAndKnowsWhatItKept) {
  EXPECT_TRUE(refused(stream("a", {})).says("takes a value that is not there"));
  EXPECT_TRUE(refused(stream("N(0", {})).says("takes a value that is not there"));
  EXPECT_TRUE(refused(stream("u", {})).says("no mark where one is needed"));
  EXPECT_TRUE(refused(stream("j\xff\xff\xff\xff", {})).says("recalls value 4294967295"));
  EXPECT_TRUE(refused(stream("X\xff\xff\xff\x7f", {})).says("a text of 2147483647 bytes"));
  // A list within itself is a description like any other; nothing walks it.
  const TorchFile file = read_state(stream("}(" + text("loop") +
                                               "]r\xff\xff\xff\xff"
                                               "j\xff\xff\xff\xff"
                                               "au",
                                           {}));
  EXPECT_EQ(file.left_out, std::vector<std::string>{"loop"});
}

TEST(TorchFile, TooManyValuesAreRefused) {
  EXPECT_TRUE(refused(stream(std::string((size_t{1} << 22) + 1, 'N'), {})).says("more than 4194304 values"));
}

// The golden archive, one field of its directory changed.
class TorchArchive : public testing::Test {
 protected:
  std::string listed(size_t entry, size_t field, const std::string& with) const {
    size_t at = 0;
    for (size_t n = 0; n <= entry; ++n) at = zip_.find("PK\x01\x02", at + 1);
    return changed(zip_, at + field, with);
  }
  const std::string zip_ = text_of(kFiles + "zip.bin");
};

TEST_F(TorchArchive, EachRuleOfAnArchiveIsChecked) {
  EXPECT_TRUE(refused(listed(2, 10, number(uint16_t{8}))).says("'archive/data/0' is compressed"));
  EXPECT_TRUE(refused(listed(2, 8, number(uint16_t{1}))).says("'archive/data/0' is encrypted"));
  EXPECT_TRUE(refused(listed(2, 16, number(uint32_t{1}))).says("'archive/data/0' is damaged"));
  const std::string much = number(uint32_t{2'000'000'000});
  EXPECT_TRUE(refused(listed(2, 20, much + much)).says("claims 2000000000 bytes"));
  EXPECT_TRUE(refused(listed(2, 20, much)).says("has two sizes"));
  EXPECT_TRUE(refused(listed(2, 42, number(uint32_t{0}))).says("another name in the directory"));
  EXPECT_TRUE(refused(listed(2, 42, much)).says("not where the directory says"));
  // The second entry, of 6 bytes, claims the first bytes of the third: its header and its elements.
  EXPECT_TRUE(refused(listed(1, 20, number(uint32_t{80}) + number(uint32_t{80}))).says("shares bytes with another"));
  const size_t end = zip_.rfind("PK\x05\x06");
  EXPECT_TRUE(refused(changed(zip_, end + 10, number(uint16_t{60000}))).says("cannot list 60000 entries"));
  EXPECT_TRUE(refused(changed(zip_, end + 16, number(uint32_t{60000}))).says("lies outside of it"));
  EXPECT_TRUE(refused(changed(zip_, end, "XX")).says("no directory at its end"));
}

TEST_F(TorchArchive, AChangedByteOfATensorIsFound) {
  const std::string floats = number(1.0F) + number(2.0F) + number(3.0F) + number(4.0F);
  const size_t at = zip_.find(floats);
  ASSERT_NE(at, std::string::npos);
  EXPECT_TRUE(refused(changed(zip_, at, number(8.0F))).says("is damaged: its bytes differ from their checksum"));
}

}  // namespace
}  // namespace mh
