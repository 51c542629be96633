// One holder at a time; a process that is gone holds nothing.
#include "multihead/io/folder_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/harness/child.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

TEST(FolderLock, ASecondHolderIsRefusedByNameUntilTheFirstIsGone) {
  const TemporaryFolder folder;
  FolderLock::check_free(folder.path());
  EXPECT_EQ(folder.files(), 0U);
  std::optional<FolderLock> first(folder.path());
  const std::string sentence = fmt::format(
      "'{}' is in use by process {}; expected a folder that no other run writes to", folder.path(), getpid());
  EXPECT_EQ(refusal_of([&] { FolderLock second(folder.path()); }).sentence, sentence);
  EXPECT_EQ(refusal_of([&] { FolderLock::check_free(folder.path()); }).sentence, sentence);
  first.reset();
  FolderLock::check_free(folder.path());
  const FolderLock second(folder.path());
}

TEST(FolderLock, AKilledProcessHoldsNothing) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork_child();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FolderLock held(folder.path());
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  EXPECT_EQ(
      refusal_of([&] { FolderLock::check_free(folder.path()); }).sentence,
      fmt::format("'{}' is in use by process {}; expected a folder that no other run writes to", folder.path(), child));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const FolderLock mine(folder.path());
}

TEST(FolderLock, NeedsAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal_of([&] { FolderLock none(folder / "none"); }).kind, ErrorKind::io);
  FolderLock::check_free(folder / "none");
}

}  // namespace
}  // namespace mh
