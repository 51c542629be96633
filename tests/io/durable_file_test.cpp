// Files that are there whole or not at all: a full disk, a limit, a folder that may not be written.
#include "multihead/io/durable_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

constexpr uid_t kNobody = 65534;

void expect_refused(const Refusal& refusal, const std::string& path, const std::string& reason) {
  EXPECT_EQ(refusal.kind, ErrorKind::io);
  EXPECT_EQ(refusal.sentence, "cannot write '" + path + "': " + reason);
}

TEST(DurableFile, WritesPartsInOrderAndReplaces) {
  const TemporaryFolder folder;
  write_durably(folder / "file", "old");
  const std::string a = "one, ", b, c = "two";
  write_durably(folder / "file",
                {std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), std::as_bytes(std::span(c))});
  EXPECT_EQ(text_of(folder / "file"), "one, two");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DurableFile, GivesTheRightsOfAnyNewFile) {
  const TemporaryFolder folder;
  const mode_t before = umask(027);
  write_durably(folder / "file", "text");
  umask(before);
  struct stat facts {};
  ASSERT_EQ(stat((folder / "file").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
}

TEST(DurableFile, ALimitOnSizesLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_durably(folder / "file", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Refusal refusal = refusal_of([&] { write_durably(folder / "file", std::string(1001, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  expect_refused(refusal, folder / "file", "File too large");
  EXPECT_EQ(text_of(folder / "file"), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DurableFile, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "this process may not mount a small disk";
  write_durably(folder / "file", "old");
  const Refusal refusal = refusal_of([&] { write_durably(folder / "file", std::string(1 << 20, 'x')); });
  const std::string left = text_of(folder / "file");
  const size_t files = folder.files();
  ASSERT_EQ(umount(folder.path().c_str()), 0);
  expect_refused(refusal, folder / "file", "No space left on device");
  EXPECT_EQ(left, "old");
  EXPECT_EQ(files, 1u);
}

TEST(DurableFile, AFolderWithoutRightsLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_durably(folder / "file", "old");
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const bool root = geteuid() == 0;  // whom no rights stop
  ASSERT_EQ(seteuid(root ? kNobody : geteuid()), 0);
  const Refusal refusal = refusal_of([&] { write_durably(folder / "file", "new"); });
  const Refusal folder_refusal = refusal_of([&] { make_folder(folder / "below/deeper"); });
  const Refusal asked = refusal_of([&] { check_writable_folder(folder / "below/deeper"); });
  ASSERT_EQ(seteuid(root ? 0 : geteuid()), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(asked.sentence, "cannot write to '" + (folder / "below/deeper") + "': Permission denied");
  EXPECT_NO_THROW(check_writable_folder(folder / "below/deeper"));
  expect_refused(refusal, folder / "file", "Permission denied");
  EXPECT_TRUE(folder_refusal.says("cannot make the folder '" + (folder / "below") + "': Permission denied"))
      << folder_refusal.sentence;
  EXPECT_EQ(text_of(folder / "file"), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DurableFile, RefusesPlacesThatAreNone) {
  const TemporaryFolder folder;
  expect_refused(refusal_of([&] { write_durably(folder / "no/file", "x"); }), folder / "no/file",
                 "No such file or directory");
  std::filesystem::create_directory(folder / "taken");
  expect_refused(refusal_of([&] { write_durably(folder / "taken", "x"); }), folder / "taken", "Is a directory");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DurableFile, WhatIsNoFileStaysWhatItIs) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_NO_THROW(check_writable_file(pipe));
  write_durably(pipe, "text");
  char read_back[8] = {};
  EXPECT_EQ(read(reader, read_back, sizeof read_back), 4);
  EXPECT_STREQ(read_back, "text");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DurableFile, ALinkStaysOneAndItsFileIsReplaced) {
  const TemporaryFolder folder;
  make_folder(folder / "below");
  put_text(folder / "below/file", "old");
  std::filesystem::create_symlink("below/file", folder / "link");
  write_durably(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(text_of(folder / "below/file"), "new");
}

TEST(DurableFile, WhatCannotBeWrittenIsToldWithoutWriting) {
  const TemporaryFolder folder;
  put_text(folder / "file", "x");
  EXPECT_NO_THROW(check_writable_file(folder / "file"));
  EXPECT_NO_THROW(check_writable_file(folder / "other"));
  EXPECT_NO_THROW(check_writable_folder(folder / "a/b"));
  expect_refused(refusal_of([&] { check_writable_file(folder / "a/b"); }), folder / "a/b", "No such file or directory");
  expect_refused(refusal_of([&] { check_writable_file(folder / "file/b"); }), folder / "file/b", "Not a directory");
  for (const std::string& path : {folder / "file", folder / "file/a/b"}) {
    EXPECT_EQ(refusal_of([&] { check_writable_folder(path); }).sentence,
              "cannot write to '" + path + "': '" + (folder / "file") + "' is a file; expected a folder");
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DurableFile, MakesFoldersAboveAndAcceptsThoseThere) {
  const TemporaryFolder folder;
  for (const char* path : {"a/b/c", "a/b/c", "a/d/", "e"}) {
    make_folder(folder / path);
    EXPECT_TRUE(std::filesystem::is_directory(folder / path));
  }
  put_text(folder / "file", "x");
  EXPECT_TRUE(refusal_of([&] { make_folder(folder / "file"); }).says("Not a directory"));
  EXPECT_TRUE(refusal_of([&] { make_folder(folder / "file/below"); }).says("Not a directory"));
}

TEST(DurableFile, LeftoversGoAndNothingElse) {
  const TemporaryFolder folder;
  for (const char* name : {"step-1.tmp-0123456789abcdef", "step-1.tmp-short", "step-1", "other.tmp-0123456789abcdef"})
    put_text(folder / name, "x");
  remove_leftovers(folder.path(), "step-");
  EXPECT_EQ(folder.files(), 3u);
  EXPECT_FALSE(std::filesystem::exists(folder / "step-1.tmp-0123456789abcdef"));
  remove_leftovers(folder / "missing", "step-");
}

}  // namespace
}  // namespace mh
