// `multihead new`: every task's folder trains as it is, and nothing that is there is written over.
#include <gtest/gtest.h>

#include "cli/starters/starters.h"
#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

using NewFolders = Program;

TEST_F(NewFolders, OfEveryTaskTrainAsTheyAre) {
  const TemporaryFolder folder;
  for (const std::string task :
       {"translation", "language_model", "classify", "tag", "answer", "recommend", "image_class", "speech_class"}) {
    const std::string mine = folder / task;
    const Ran made = run("new " + task + " " + in_quotes(mine) + "/");
    ASSERT_EQ(made.code, 0) << task;
    EXPECT_NE(made.out.find("to train: multihead train " + mine + "/config.toml"), std::string::npos) << made.out;
    EXPECT_EQ(text_of(mine + "/config.toml").find("FOLDER"), std::string::npos);
    const Ran checked = run("train " + in_quotes(mine + "/config.toml") + " --check --threads 1", true);
    EXPECT_EQ(checked.code, 0) << task << checked.out;
    EXPECT_EQ(checked.out.find("validation  none"), std::string::npos) << checked.out;
  }
}

TEST_F(NewFolders, AreNotWrittenOver) {
  const TemporaryFolder folder;
  put_text(folder / "config.toml", "mine");
  const Ran ran = run("new classify " + in_quotes(folder.path()), true);
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("is there already; expected another folder"), std::string::npos) << ran.out;
  EXPECT_EQ(text_of(folder / "config.toml"), "mine");
  EXPECT_EQ(folder.files(), 1U);
  EXPECT_EQ(run("new poems " + in_quotes(folder / "x")).code, 2);
}

}  // namespace
}  // namespace mh::cli
