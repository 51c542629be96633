// Lines of files, of slow writers, without an end, and too long ones.
#include "cli/line_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

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

}  // namespace
}  // namespace mh::cli
