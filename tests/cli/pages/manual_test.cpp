// The pages made from the program: docs/cli.md is up to date, and man(1) takes the manual.
#include <gtest/gtest.h>

#include <sstream>

#include "cli/exit_code.h"
#include "cli/pages/manual.h"
#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

using Manual = Program;

TEST_F(Manual, ThePageOfTheDocsIsUpToDate) {
  EXPECT_EQ(run("reference markdown").out, text_of(std::string(MH_TEST_DATA) + "/../docs/cli.md"))
      << "docs/cli.md is stale; make it anew: multihead reference markdown > docs/cli.md";
}

TEST_F(Manual, TheDocsPageOfModelsIsUpToDate) {
  EXPECT_EQ(run("reference models").out, text_of(std::string(MH_TEST_DATA) + "/../docs/models.md"))
      << "docs/models.md is stale; make it anew: multihead reference models > docs/models.md";
}

TEST_F(Manual, HoldsEveryFlagAndExitCode) {
  const std::string page = run("reference markdown").out, manual = run("reference man").out;
  std::istringstream flags(run("reference flags").out);
  for (std::string line; std::getline(flags, line);) {
    std::istringstream fields(line);
    std::string command, name;
    std::getline(fields, command, '\t');
    std::getline(fields, name, '\t');
    EXPECT_NE(page.find("## multihead " + command + "\n"), std::string::npos) << command;
    EXPECT_NE(page.find(name), std::string::npos) << name;
  }
  for (const ExitCode& each : kExitCodes) {
    EXPECT_NE(page.find(std::string("| ") + each.code + " | " + each.meaning), std::string::npos);
    EXPECT_NE(manual.find(std::string(".B ") + each.code + "\n"), std::string::npos);
  }
}

TEST_F(Manual, IsRoff) {
  std::istringstream lines(run("reference man").out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('.')) continue;
    bool known = false;
    for (const char* macro : {".TH ", ".SH ", ".SS ", ".TP", ".B ", ".PP", ".nf", ".fi"})
      known |= line.starts_with(macro);
    EXPECT_TRUE(known) << line;
  }
  const TemporaryFolder folder;
  put_text(folder / "multihead.1", run("reference man").out);
  if (system("command -v man >/dev/null && command -v groff >/dev/null") != 0) GTEST_SKIP() << "man is not installed";
  const std::string render = "MANWIDTH=100 man --warnings -l " + in_quotes(folder / "multihead.1") + " >" +
                             in_quotes(folder / "text") + " 2>" + in_quotes(folder / "warnings");
  EXPECT_EQ(system(render.c_str()), 0);
  EXPECT_EQ(text_of(folder / "warnings"), "");
  const std::string text = text_of(folder / "text");
  for (const char* part : {"EXIT STATUS", "--resume", "echo 'How are you?' | multihead translate"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(ManualText, NothingInItIsTakenForAMacro) {
  const CommandFacts command{
      .name = "x", .about = ".dots", .end = "'quotes\n.TH\na\\b", .flags = {{.names = {"--a|b"}, .about = "c|d"}}};
  const std::string manual = man_page({{.about = "all"}, command}, "1.2.3");
  for (const char* line : {"\n\\&.dots\n", "\n\\&\\(aqquotes\n", "\n\\&.TH\n", "\na\\eb\n", "multihead 1.2.3"})
    EXPECT_NE(manual.find(line), std::string::npos) << line << manual;
  EXPECT_NE(markdown_manual({{.about = "all"}, command}).find("| `--a\\|b` | c\\|d |\n"), std::string::npos);
}

}  // namespace
}  // namespace mh::cli
