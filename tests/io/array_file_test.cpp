// IDX and .npy files: numbers come back as they were written, and damaged files are refused.
#include "multihead/io/array_file.h"

#include <gtest/gtest.h>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class ArrayFiles : public testing::Test {
 protected:
  Tensor idx(const std::string& bytes) {
    put_text(folder_ / "a-idx", bytes);
    return read_idx(folder_ / "a-idx");
  }
  // As numpy.save writes it: a header of a multiple of 64 bytes.
  Tensor npy(const std::string& dict, const std::string& numbers, char version = 1) {
    std::string header = dict;
    while ((10 + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    std::string file = std::string("\x93NUMPY") + version + '\0' + static_cast<char>(header.size() % 256) +
                       static_cast<char>(header.size() / 256);
    if (version > 1) file += std::string(2, '\0');
    put_text(folder_ / "a.npy", file + header + numbers);
    return read_npy(folder_ / "a.npy");
  }
  template <class Body>
  std::string refused(Body body) {
    const Refusal refusal = refusal_of(body);
    EXPECT_NE(refusal.kind, ErrorKind::internal) << refusal.sentence;
    return refusal.sentence;
  }
  TemporaryFolder folder_;
};

std::string text(std::initializer_list<int> bytes) {
  std::string out;
  for (const int b : bytes) out += static_cast<char>(b);
  return out;
}

TEST_F(ArrayFiles, IdxNumbersAreBigEndian) {
  const Tensor u8 = idx(text({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255}));
  EXPECT_EQ(u8.shape(), (Shape{2, 3}));
  EXPECT_EQ(u8.item({1, 2}), 255);
  EXPECT_EQ(idx(text({0, 0, 0x0B, 1, 0, 0, 0, 2, 1, 2, 255, 254})).item({0}), 258);
  EXPECT_EQ(idx(text({0, 0, 0x0B, 1, 0, 0, 0, 2, 1, 2, 255, 254})).item({1}), -2);
  EXPECT_EQ(idx(text({0, 0, 0x0C, 1, 0, 0, 0, 1, 255, 255, 255, 0})).item({0}), -256);
  EXPECT_EQ(idx(text({0, 0, 0x0D, 1, 0, 0, 0, 1, 0x40, 0x20, 0, 0})).item({0}), 2.5);
  EXPECT_EQ(idx(text({0, 0, 8, 1, 0, 0, 0, 0})).count(), 0);
}

TEST_F(ArrayFiles, DamagedIdxIsRefused) {
  EXPECT_NE(refused([&] { idx("PNG"); }).find("not an IDX file"), std::string::npos);
  EXPECT_NE(refused([&] { idx(text({0, 0, 7, 1, 0, 0, 0, 0})); }).find("its type is 0x07"), std::string::npos);
  EXPECT_NE(refused([&] { idx(text({0, 0, 8, 2, 0, 0, 0, 2})); }).find("ends within its header"), std::string::npos);
  EXPECT_NE(refused([&] {
              idx(text({0, 0, 8, 1, 0, 0, 0, 2, 1}));
            }).find("1 bytes of numbers; expected those of [2]"),
            std::string::npos);
  const std::string huge = text({0, 0, 8, 3}) + std::string(12, '\xFF');
  EXPECT_NE(refused([&] { idx(huge); }).find("0 bytes of numbers"), std::string::npos);
  EXPECT_NE(refused([&] { idx(text({0, 0, 8, 200}) + std::string(800, '\0')); }).find("200 axes"), std::string::npos);
}

TEST_F(ArrayFiles, NpyNumbersHaveTheOrderOfTheirHeader) {
  const std::string shape = "'fortran_order': False, 'shape': ";
  const Tensor f4 = npy("{'descr': '<f4', " + shape + "(1, 2), }", text({0, 0, 0x20, 0x40, 0, 0, 0x80, 0xBF}));
  EXPECT_EQ(f4.shape(), (Shape{1, 2}));
  EXPECT_EQ(f4.item({0, 0}), 2.5);
  EXPECT_EQ(f4.item({0, 1}), -1);
  EXPECT_EQ(npy("{'descr': '>i4', " + shape + "(1,), }", text({0, 0, 1, 0})).item({0}), 256);
  EXPECT_EQ(npy("{'descr': '|u1', " + shape + "(), }", text({7}), 2).item({}), 7);
}

TEST_F(ArrayFiles, DamagedNpyIsRefused) {
  const std::string shape = "'fortran_order': False, 'shape': (2,), }";
  EXPECT_NE(refused([&] { npy("{'descr': '<f4', " + shape, "1234"); }).find("expected those of [2], 4 bytes each"),
            std::string::npos);
  EXPECT_NE(refused([&] { npy("{'descr': '|O', " + shape, ""); }).find("numbers of type '|O'"), std::string::npos);
  EXPECT_NE(refused([&] { npy("{'descr': [('a', '<f4')], " + shape, ""); }).find("holds records"), std::string::npos);
  EXPECT_NE(refused([&] { npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", ""); }).find("Fortran"),
            std::string::npos);
  EXPECT_NE(
      refused([&] { npy("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }", ""); }).find("whole numbers"),
      std::string::npos);
  EXPECT_NE(refused([&] { npy("{}", ""); }).find("has no 'fortran_order'"), std::string::npos);
  put_text(folder_ / "b.npy", text({0x93}) + "NUMPY" + text({1, 0, 255, 255, 1, 2}));
  EXPECT_NE(refused([&] { read_npy(folder_ / "b.npy"); }).find("ends within its header"), std::string::npos);
}

TEST_F(ArrayFiles, WrittenNpyIsReadBackWithItsNote) {
  const Tensor x = randn({3, 5}, 1);
  write_npy(folder_ / "x.npy", x, "made of these words");
  const Tensor back = read_npy(folder_ / "x.npy");
  ASSERT_EQ(back.shape(), x.shape());
  for (int64_t n = 0; n < 15; ++n) EXPECT_EQ(back.data<float>()[n], x.data<float>()[n]);
  EXPECT_EQ(read_npy_note(folder_ / "x.npy"), "made of these words");
  EXPECT_EQ(text_of(folder_ / "x.npy").size() % 64, 60U);  // 64-byte header
  write_npy(folder_ / "y.npy", tensor<int64_t>({4, 5}, {2}));
  EXPECT_EQ(read_npy(folder_ / "y.npy").item({1}), 5);
  EXPECT_EQ(read_npy_note(folder_ / "y.npy"), "");
  EXPECT_NE(npy_prefix({2}, DType::f32).find("'shape': (2,), }"), std::string::npos);
  EXPECT_TRUE(refusal_of([] { npy_prefix({2}, DType::bf16); }).says("there is no type for bf16"));
  EXPECT_TRUE(refusal_of([] { npy_prefix({2}, DType::f32, "a\nb"); }).says("line break"));
}

}  // namespace
}  // namespace mh
