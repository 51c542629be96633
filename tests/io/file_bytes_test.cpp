// Whole files and pipes: what is read, and what is refused instead of being waited for.
#include "multihead/io/file_bytes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

std::string text_of(const std::string& path) {
  const detail::FileBytes file = detail::read_file_or_pipe(path);
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

TEST(FileBytes, AFileIsReadWhole) {
  const TemporaryFolder folder;
  const std::string large(200'000, 'x');
  put_text(folder / "large", large);
  put_text(folder / "empty", "");
  EXPECT_EQ(text_of(folder / "large"), large);
  EXPECT_EQ(text_of(folder / "empty"), "");
}

TEST(FileBytes, APipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string part(100'000, 'p');
  std::thread writer([&] {
    for (int n = 0; n < 2; ++n) {
      for (size_t at = 0; at < part.size();)
        at += static_cast<size_t>(write(ends[1], part.data() + at, part.size() - at));
    }
    close(ends[1]);
  });
  EXPECT_EQ(text_of("/dev/fd/" + std::to_string(ends[0])), part + part);
  writer.join();
  close(ends[0]);
}

TEST(FileBytes, APipeNobodyWritesToIsEmptyAndNoModel) {
  const TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(text_of(path), "");
  EXPECT_EQ(refusal_of([&] { detail::map_file(path); }).sentence,
            "cannot read '" + path + "': it is a pipe; expected a file");
}

TEST(FileBytes, WhatIsNoFileIsRefusedByName) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal_of([&] { text_of(folder.path()); }).sentence,
            "cannot read '" + folder.path() + "': it is a folder; expected a file");
  EXPECT_EQ(refusal_of([&] { text_of("/dev/zero"); }).sentence,
            "cannot read '/dev/zero': it is a device; expected a file");
  EXPECT_EQ(refusal_of([&] { text_of(folder / "none"); }).sentence,
            "cannot read '" + (folder / "none") + "': No such file or directory");
}

}  // namespace
}  // namespace mh
