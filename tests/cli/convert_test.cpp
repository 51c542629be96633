// `multihead convert`: the two directions from the command line.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"
#include "tests/models/encoder_folder.h"

namespace mh::cli {
namespace {

class Convert : public Program {
 protected:
  Ran convert(const std::string& from, const std::string& to, const std::string& flags = "") const {
    return run("convert " + in_quotes(folder_ / from) + " " + in_quotes(folder_ / to) + " " + flags, true);
  }
  TemporaryFolder folder_;
};

TEST_F(Convert, AnOldFolderBecomesOneThatTheOtherVerbsRead) {
  test::put_encoder(folder_ / "old", "bert_masked");
  const Ran ran = convert("old", "new", "--dtype bf16");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find("a bert masked language model: use `multihead fill`\n"), std::string::npos) << ran.out;
  EXPECT_EQ(run("fill " + in_quotes(folder_ / "new") + " < /dev/null").code, 0);
  const Ran again = convert("old", "new");
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.out.find("is there already; expected a new folder"), std::string::npos) << again.out;
}

TEST_F(Convert, OurTranslatorBecomesATextToTextModel) {
  std::filesystem::create_directory_symlink(MH_TEST_DATA "/../models/en-de", folder_ / "ours");
  const Ran ran = convert("ours", "theirs", "--to huggingface");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find(": a PegasusForConditionalGeneration\n"), std::string::npos) << ran.out;
  put_text(folder_ / "lines", "How are you?\n");
  EXPECT_EQ(run("translate " + in_quotes(folder_ / "theirs") + " < " + in_quotes(folder_ / "lines")).out,
            "Wie geht es dir?\n");
  for (const char* to : {"", "--to huggingface"}) EXPECT_EQ(convert("theirs", "again", to).code, *to == '\0' ? 0 : 1);
  EXPECT_NE(convert("theirs", "third", "--to huggingface").out.find("of Hugging Face's already"), std::string::npos);
  EXPECT_NE(convert("ours", "third").out.find("holds no config.json"), std::string::npos);
}

TEST_F(Convert, WrongWordsAreRefused) {
  EXPECT_EQ(convert("a", "b", "--dtype f12").code, 2);
  EXPECT_EQ(convert("a", "b", "--to gguf").code, 2);
  EXPECT_EQ(convert("a", "b").code, 1);
  EXPECT_EQ(convert("a", "b", "--to huggingface --as bert").code, 1);
}

}  // namespace
}  // namespace mh::cli
