// Folders with labels: order, endings, and what is passed over.
#include "multihead/tasks/readers/labelled_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

TEST(LabelledFolders, FilesHaveTheNameOfTheirFolder) {
  const TemporaryFolder folder;
  for (const char* label : {"dog", "cat", ".hidden", "empty"}) std::filesystem::create_directory(folder / label);
  for (const char* file :
       {"dog/2.png", "dog/1.PNG", "cat/9.png", "cat/.x.png", "cat/notes.txt", ".hidden/1.png", "top.png"})
    put_text(folder / file, "");
  const auto found = read_labelled_folder(folder.path(), {".png"});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].label, "cat");
  EXPECT_EQ(found[0].path, folder / "cat/9.png");
  EXPECT_EQ(found[1].path, folder / "dog/1.PNG");
  EXPECT_EQ(found[2].path, folder / "dog/2.png");
  EXPECT_EQ(read_labelled_folder(folder.path()).size(), 4U);
  EXPECT_TRUE(refusal_of([&] {
                read_labelled_folder(folder.path(), {".wav"});
              }).says("no folder with a file that ends in .wav"));
  EXPECT_EQ(refusal_of([&] { read_labelled_folder(folder / "none"); }).kind, ErrorKind::io);
}

}  // namespace
}  // namespace mh
