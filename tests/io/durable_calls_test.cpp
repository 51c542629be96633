// The order of the system calls behind a durable file, and what a crash or a failure between any two of them leaves.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <optional>
#include <set>

#include "multihead/io/checkpoint.h"
#include "multihead/io/durable_file.h"
#include "tests/harness/child.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"
#include "tests/io/recorded_calls.h"

namespace mh {
namespace {

using test::Call;
using test::RecordedCalls;

constexpr const char* kNone = "no file";
const std::string kOld = "the old text", kFirst = "the new ", kSecond = "text, longer", kNew = kFirst + kSecond;

void write_new(const std::string& path) {
  write_durably(path, {std::as_bytes(std::span(kFirst)), std::as_bytes(std::span(kSecond))});
}

// What lies under `path` when the machine loses power after the first `count` calls. POSIX promises no more than this:
// what was written to a file is there for certain once the file was synced, before that in part or not at all; a name
// leads to the new file for certain once the folder was synced, before that to the old one or the new one.
std::set<std::string> after_power_loss(const std::vector<Call>& calls, size_t count, const std::string& path,
                                       const std::string& old) {
  struct File {
    std::string written, synced;
  };
  std::map<std::string, File> files = {{"old", {old, old}}};  // by their first names
  std::vector<std::string> named = {"old"};                   // those that `path` may lead to, the latest last
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (size_t n = 0; n < count; ++n) {
    const Call& call = calls[n];
    if (call.name == "write") files[call.path].written += call.bytes;
    if (call.name == "fsync" && call.path != folder) files[call.path].synced = files[call.path].written;
    if (call.name == "fsync" && call.path == folder) named = {named.back()};
    if (call.name == "rename" && call.target == path) named.push_back(call.path);
  }
  std::set<std::string> out;
  for (const std::string& name : named) {
    const File& file = files[name];
    out.insert(file.written);
    if (file.synced == file.written) continue;
    out.insert(file.synced);
    out.insert(file.written.substr(0, file.written.size() / 2));
  }
  return out;
}

TEST(DurableCalls, AreWriteSyncRenameSyncTheFolder) {
  const TemporaryFolder folder;
  RecordedCalls recorded;
  write_new(folder / "file");
  EXPECT_EQ(recorded.names(), "open write write fsync close rename open fsync close");
  ASSERT_EQ(recorded.calls.size(), 9u);
  const std::string temporary = recorded.calls[0].path;
  EXPECT_TRUE(temporary.starts_with(folder / "file.tmp-")) << temporary;
  for (const size_t n : {1, 2, 3, 4, 5}) EXPECT_EQ(recorded.calls[n].path, temporary) << n;
  EXPECT_EQ(recorded.calls[5].target, folder / "file");
  for (const size_t n : {6, 7, 8}) EXPECT_EQ(recorded.calls[n].path, folder.path()) << n;
}

TEST(DurableCalls, APowerLossAnywhereLeavesTheOldOrTheNew) {
  for (const char* old : {kOld.c_str(), kNone}) {
    const TemporaryFolder folder;
    if (old != kNone) put_text(folder / "file", old);
    RecordedCalls recorded;
    recorded.most_at_once = 5;
    write_new(folder / "file");
    for (size_t count = 0; count <= recorded.calls.size(); ++count)
      for (const std::string& left : after_power_loss(recorded.calls, count, folder / "file", old))
        EXPECT_TRUE(left == old || left == kNew) << "after " << count << " calls: " << left;
    // Once it has returned, the new one is there for certain.
    EXPECT_EQ(after_power_loss(recorded.calls, recorded.calls.size(), folder / "file", old),
              (std::set<std::string>{kNew}));
  }
}

TEST(DurableCalls, APowerLossLeavesAMixtureWhereASyncIsMissing) {
  const TemporaryFolder folder;
  RecordedCalls recorded;
  write_new(folder / "file");
  const auto without = [&](size_t call) {
    std::vector<Call> calls = recorded.calls;
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(call));
    return after_power_loss(calls, calls.size(), folder / "file", kOld);
  };
  EXPECT_EQ(without(3), (std::set<std::string>{"", kNew.substr(0, kNew.size() / 2), kNew}));
  EXPECT_EQ(without(7), (std::set<std::string>{kOld, kNew}));
}

TEST(DurableCalls, AKillAnywhereLeavesTheOldOrTheNew) {
  const TemporaryFolder folder;
  size_t total = 0;
  {
    RecordedCalls recorded;
    write_new(folder / "file");
    total = recorded.calls.size();
  }
  std::set<std::string> seen;
  for (size_t count = 0; count < total; ++count) {
    put_text(folder / "file", kOld);
    const pid_t child = fork_child();
    ASSERT_GE(child, 0);
    if (child == 0) {
      RecordedCalls recorded;
      recorded.end_after = count;
      write_new(folder / "file");
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "after " << count << " calls";
    const std::string left = text_of(folder / "file");
    EXPECT_TRUE(left == kOld || left == kNew) << "after " << count << " calls: " << left;
    seen.insert(left);
    remove_leftovers(folder.path(), "file");
    EXPECT_EQ(folder.files(), 1u) << "after " << count << " calls";
  }
  EXPECT_EQ(seen, (std::set<std::string>{kOld, kNew}));
}

TEST(DurableCalls, AFailureAnywhereIsSaidAndLeavesTheOldOrTheNew) {
  const std::string reason = ": Input/output error";
  for (size_t failed = 0; failed < 9; ++failed) {
    const TemporaryFolder folder;
    const std::string path = folder / "file";
    put_text(path, kOld);
    RecordedCalls recorded;
    recorded.fail_at = failed;
    const Refusal refusal = refusal_of([&] { write_new(path); });
    if (failed <= 5) {
      EXPECT_EQ(refusal.sentence, "cannot write '" + path + "'" + reason) << recorded.names();
      EXPECT_EQ(text_of(path), kOld) << recorded.names();
    } else {
      const std::string expected = failed == 8 ? "no refusal" : "cannot sync the folder of '" + path + "'" + reason;
      EXPECT_EQ(refusal.sentence, expected) << recorded.names();
      EXPECT_EQ(text_of(path), kNew) << recorded.names();
    }
    // A descriptor that could not be closed is the system's; the file under its temporary name is gone all the same.
    EXPECT_EQ(folder.files(), 1u) << recorded.names();
  }
}

TEST(DurableCalls, WhatWasInterruptedOrShortIsTakenUpAgain) {
  for (const size_t interrupted : {1, 2, 5}) {
    const TemporaryFolder folder;
    RecordedCalls recorded;
    recorded.most_at_once = 5;
    recorded.fail_at = interrupted;
    recorded.error = EINTR;
    write_new(folder / "file");
    EXPECT_EQ(recorded.names(), "open write write write write write write fsync close rename open fsync close");
    EXPECT_EQ(text_of(folder / "file"), kNew);
  }
  const TemporaryFolder folder;
  RecordedCalls recorded;
  recorded.fail_at = 3;
  recorded.error = EINTR;
  write_new(folder / "file");
  EXPECT_EQ(recorded.names(), "open write write fsync fsync close rename open fsync close");
}

TEST(DurableCalls, AFileSystemThatCannotSyncFoldersIsAccepted) {
  const TemporaryFolder folder;
  RecordedCalls recorded;
  recorded.fail_at = 7;
  recorded.error = EINVAL;
  EXPECT_NO_THROW(write_new(folder / "file"));
}

TEST(DurableCalls, EachNewFolderIsSyncedIntoTheOneAbove) {
  const TemporaryFolder folder;
  RecordedCalls recorded;
  make_folder(folder / "a/b");
  EXPECT_EQ(recorded.names(), "mkdir open fsync close mkdir open fsync close");
  ASSERT_EQ(recorded.calls.size(), 8u);
  EXPECT_EQ(recorded.calls[2].path, folder.path());
  EXPECT_EQ(recorded.calls[6].path, folder / "a");
}

// Ends `save_checkpoint` of step 2 after so many calls, in a process of its own; whether it came to its end.
bool save_until(const std::string& folder, size_t count) {
  const pid_t child = fork_child();
  if (child == 0) {
    RecordedCalls recorded;
    recorded.end_after = count;
    save_checkpoint(folder, {.step = 2, .tensors = {{"x", full({3}, 2)}}, .state = "2"}, 1);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

TEST(DurableCalls, ACheckpointGoesOnlyWhenTheNextOneIsSafe) {
  size_t count = 0;
  for (bool whole = false; !whole; ++count) {
    ASSERT_LT(count, 50u);
    const TemporaryFolder folder;
    save_checkpoint(folder.path(), {.step = 1, .tensors = {{"x", full({3}, 1)}}, .state = "1"}, 1);
    whole = save_until(folder.path(), count);
    std::vector<std::string> warnings;
    const std::optional<Checkpoint> left = load_newest_checkpoint(folder.path(), &warnings);
    ASSERT_TRUE(left.has_value()) << "after " << count << " calls";
    EXPECT_TRUE(warnings.empty()) << warnings.front();
    // Nothing is deleted before the last call, the one that closes the folder.
    EXPECT_EQ(std::filesystem::exists(folder / "step-00000001.safetensors"), !whole) << "after " << count << " calls";
  }
  EXPECT_GT(count, 8u);
}

}  // namespace
}  // namespace mh
