// Files that would be written over what is read.
#include "cli/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

TEST(OutputFile, IsNoneOfTheInputsByWhateverName) {
  const TemporaryFolder folder;
  put_text(folder / "a", "one");
  put_text(folder / "b", "two");
  std::filesystem::create_hard_link(folder / "b", folder / "hard");
  std::filesystem::create_symlink("b", folder / "soft");
  for (const char* name : {"b", "hard", "soft"}) {
    const auto refusal = refusal_of([&] { check_output("--out", folder / name, {folder / "a", folder / "b"}); });
    EXPECT_EQ(refusal.sentence, "--out '" + (folder / name) + "' would overwrite '" + (folder / "b") +
                                    "', which is read; expected another file");
  }
  const std::string roundabout = folder.path() + "/./b";
  EXPECT_NE(refusal_of([&] { check_output("--out", roundabout, {folder / "b"}); }).sentence.find("which is read"),
            std::string::npos);
}

TEST(OutputFile, MayBeNewOrAnotherFileOrADevice) {
  const TemporaryFolder folder;
  put_text(folder / "a", "one");
  put_text(folder / "copy", "one");
  for (const std::string& path : {folder / "new", folder / "copy", std::string("/dev/null")})
    EXPECT_NO_THROW(check_output("--out", path, {folder / "a", folder / "missing", "/dev/null"})) << path;
}

TEST(OutputFile, IsRefusedWhereItCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal_of([&] { check_output("--out", folder / "none/new", {}); }).kind, ErrorKind::io);
}

}  // namespace
}  // namespace mh::cli
