// `multihead show`, `explain-attention` and `translate --show` as users run them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/run_program.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using cli::in_quotes;
using cli::Ran;
using cli::run;

class Show : public cli::Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (!IsSkipped()) test::write_translator(folder_.path());
  }
  Ran show(const std::string& rest, const std::string& before = "") {
    return run("show " + in_quotes(folder_.path()) + " " + rest, true, before);
  }
  std::string page() const { return folder_.path() + "/page.html"; }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  TemporaryFolder folder_;
};

TEST_F(Show, TextFromTheCommandLineAFileAndStdinGiveTheSamePage) {
  ASSERT_EQ(show("'the cat sat' -o " + in_quotes(page())).code, 0);
  const std::string wanted = text_of(page());
  EXPECT_TRUE(wanted.starts_with("<!doctype html>"));
  EXPECT_NE(wanted.find("Cross-attention"), std::string::npos);
  ASSERT_EQ(show("-o " + in_quotes(page()), "printf 'the cat sat\\n' |").code, 0);
  EXPECT_EQ(text_of(page()), wanted);
  ASSERT_EQ(show("the cat sat -o " + in_quotes(page())).code, 0);
  EXPECT_EQ(text_of(page()), wanted);
  std::ofstream(folder_.path() + "/text") << "the cat sat\nand more\n";
  ASSERT_EQ(show("--file " + in_quotes(folder_.path() + "/text") + " -o " + in_quotes(page())).code, 0);
  EXPECT_EQ(text_of(page()), wanted);
}

TEST_F(Show, TranslateWritesThePageBesideItsLines) {
  const Ran ran = run("translate " + in_quotes(folder_.path()) + " --show " + in_quotes(page()), false,
                      "printf 'the cat sat\\na dog\\n' |");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 2);
  const std::string shown = text_of(page());
  ASSERT_EQ(show("'the cat sat' -o " + in_quotes(page())).code, 0);
  EXPECT_EQ(text_of(page()), shown);
}

TEST_F(Show, WhatCannotBeShownIsOneSentence) {
  const auto says = [&](const std::string& rest, const std::string& part, const std::string& before = "") {
    const Ran ran = show(rest, before);
    EXPECT_NE(ran.code, 0) << rest;
    EXPECT_NE(ran.out.find(part), std::string::npos) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
  };
  const std::string out = "-o " + in_quotes(page());
  says("'' " + out, "the text is empty");
  says(out, "there is no text", "true |");
  says("a cat -o /proc/nowhere/page.html", "/proc/nowhere");
  says("a cat --heads 9.1 " + out, "layer 9");
  says("a cat --heads 1.9 " + out, "head 1.9");
  says("a cat --heads x " + out, "LAYER.HEAD");
  says("a cat --file x " + out, "expected one of them");
  says("--file " + in_quotes(folder_.path() + "/none") + " " + out, "cannot be read");
  EXPECT_FALSE(std::filesystem::exists(page()));
  EXPECT_NE(run("show /nowhere a cat " + out, true).out.find("/nowhere"), std::string::npos);
}

// What the page says but for the numbers of the library, whose last digit may differ between machines.
std::string without_numbers(const std::string& html) {
  const size_t begin = html.find("\"library\""), end = html.find("</script>", begin);
  return html.substr(0, begin) + html.substr(end);
}

TEST_F(Show, TheTeachingPageOfTheDocsIsUpToDate) {
  ASSERT_EQ(run("explain-attention -o " + in_quotes(page()), true).code, 0);
  EXPECT_TRUE(without_numbers(text_of(page())) ==
              without_numbers(text_of(std::string(MH_TEST_DATA) + "/../docs/attention.html")))
      << "docs/attention.html is stale; make it anew: multihead explain-attention -o docs/attention.html";
}

}  // namespace
}  // namespace mh
