// Lines of files, of slow writers, without an end, and too long ones.
#include "cli/line_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/harness/refusal.h"

namespace mh::cli {
namespace {

class LineReaderTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override {
    close(ends_[0]);
    end();
  }
  void write_text(const std::string& text) {
    ASSERT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  static std::vector<std::string> texts(const std::vector<LineReader::Line>& lines) {
    std::vector<std::string> out;
    for (const auto& line : lines) out.push_back(line.text);
    return out;
  }
  int ends_[2] = {-1, -1};
};

using Texts = std::vector<std::string>;

TEST_F(LineReaderTest, TakesWhatIsThereAndWaitsForNoMore) {
  LineReader reader(ends_[0]);
  write_text("one\ntwo\nthr");
  EXPECT_EQ(texts(reader.take(10)), (Texts{"one", "two"}));  // returns while the writer still holds its end
  write_text("ee\n\n");
  EXPECT_EQ(texts(reader.take(10)), (Texts{"three", ""}));
  write_text("a\nb\nc\nlast");
  EXPECT_EQ(texts(reader.take(2)), (Texts{"a", "b"}));
  end();
  EXPECT_EQ(texts(reader.take(10)), (Texts{"c", "last"}));
  EXPECT_TRUE(reader.take(10).empty());
  EXPECT_TRUE(reader.take(10).empty());
}

TEST_F(LineReaderTest, WaitsForTheFirstLine) {
  LineReader reader(ends_[0]);
  write_text("be");
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write_text("gun\n");
  });
  EXPECT_EQ(texts(reader.take(5)), (Texts{"begun"}));
  writer.join();
}

TEST_F(LineReaderTest, TakesCarriageReturnsOff) {
  LineReader reader(ends_[0]);
  write_text("one\r\n\r\ntw\ro");
  end();
  EXPECT_EQ(texts(reader.take(5)), (Texts{"one", "", "tw\ro"}));
}

TEST_F(LineReaderTest, KeepsTheBeginningOfALongLine) {
  LineReader reader(ends_[0], 10);
  std::thread writer([&] {
    write_text("short\n" + std::string(300000, 'x') + "\nafter\n0123456789\n0123456789a\n");
    end();
  });
  std::vector<LineReader::Line> lines;
  for (auto some = reader.take(2); !some.empty(); some = reader.take(2))
    lines.insert(lines.end(), some.begin(), some.end());
  writer.join();
  EXPECT_EQ(texts(lines), (Texts{"short", std::string(10, 'x'), "after", "0123456789", "0123456789"}));
  EXPECT_EQ(lines[0].left_out, 0u);
  EXPECT_EQ(lines[1].left_out, 300000u - 10);
  EXPECT_EQ(lines[2].left_out, 0u);
  EXPECT_EQ(lines[3].left_out, 0u);
  EXPECT_EQ(lines[4].left_out, 1u);
}

TEST_F(LineReaderTest, SkipsAByteOrderMarkEvenWhereItComesInParts) {
  LineReader reader(ends_[0]);
  write_text("\xEF\xBB");
  std::thread writer([&] { write_text("\xBFone\n\xEF\xBB\xBFtwo\n"); });
  EXPECT_EQ(texts(reader.take(1)), (Texts{"one"}));
  EXPECT_EQ(texts(reader.take(1)), (Texts{"\xEF\xBB\xBFtwo"}));  // amid the text it is text
  writer.join();
}

TEST_F(LineReaderTest, ALineThatIsNotUtf8IsEmptyAndSaysWhy) {
  LineReader reader(ends_[0]);
  write_text("caf\xE9 na\xEFve\ngood\ncut \xC3");
  end();
  const auto lines = reader.take(5);
  EXPECT_EQ(texts(lines), (Texts{"", "good", ""}));
  EXPECT_TRUE(lines[0].skipped.starts_with("not UTF-8 at byte 4;")) << lines[0].skipped;
  EXPECT_EQ(lines[1].skipped, "");
  EXPECT_TRUE(lines[2].skipped.starts_with("not UTF-8 at byte 5;")) << lines[2].skipped;
}

TEST_F(LineReaderTest, ALongLineIsCutBetweenCharacters) {
  LineReader reader(ends_[0], 10);
  write_text("123456789\u20AC\n12345678\u00FC0\n123456\xF0\x9F\x98\x80z\n");
  end();
  const auto lines = reader.take(5);
  EXPECT_EQ(texts(lines), (Texts{"123456789", "12345678\u00FC", "123456\xF0\x9F\x98\x80"}));
  EXPECT_EQ(lines[0].left_out, 3u);
  EXPECT_EQ(lines[1].left_out, 1u);
  EXPECT_EQ(lines[2].left_out, 1u);
}

TEST_F(LineReaderTest, RefusesWhatIsNoText) {
  const std::pair<std::string, std::string> starts[] = {
      {"\x1f\x8b\x08\n", "stdin: compressed with gzip; expected text"},
      {std::string("\xfd\x37\x7a\x58\x5a\x00", 6), "stdin: compressed with xz; expected text"},
      {"\xff\xfe", "stdin: begins with the byte order mark of UTF-16"}};
  for (const auto& [bytes, sentence] : starts) {
    TearDown();
    SetUp();
    write_text(bytes);
    end();
    LineReader reader(ends_[0]);
    EXPECT_TRUE(refusal_of([&] { reader.take(1); }).says(sentence));
  }
}

}  // namespace
}  // namespace mh::cli
