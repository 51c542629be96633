// The shells' scripts: what bash offers, and that every flag is known to each shell.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

class Completion : public Program {
 protected:
  // What bash offers after these words, the last of them unfinished.
  std::vector<std::string> offered(const std::vector<std::string>& words) {
    put_text(folder_ / "script", run("completion bash").out);
    std::string command = "cd " + in_quotes(folder_.path()) + "; . ./script; COMP_WORDS=(multihead";
    for (const std::string& word : words) command += " " + in_quotes(word);
    command += "); COMP_CWORD=" + std::to_string(words.size()) + "; _multihead; printf '%s\\n' \"${COMPREPLY[@]}\"";
    put_text(folder_ / "ask", command);
    Ran ran;
    FILE* pipe = popen(("bash " + in_quotes(folder_ / "ask") + " 2>&1").c_str(), "r");
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) ran.out.append(part, n);
    EXPECT_EQ(pclose(pipe), 0) << ran.out;
    std::vector<std::string> out;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) out.push_back(line);
    std::sort(out.begin(), out.end());
    return out;
  }
  bool offers(const std::vector<std::string>& words, const std::string& word) {
    const auto all = offered(words);
    return std::find(all.begin(), all.end(), word) != all.end();
  }
  TemporaryFolder folder_;
};

using Words = std::vector<std::string>;

TEST_F(Completion, BashOffersCommandsFlagsAndWords) {
  EXPECT_EQ(offered({"tr"}), (Words{"train", "translate"}));
  EXPECT_EQ(offered({"bench", ""}), (Words{"attention", "gemm", "rows", "train"}));
  EXPECT_EQ(offered({"bench", "train", "--precision", ""}), (Words{"bf16", "f32"}));
  EXPECT_EQ(offered({"completion", ""}), (Words{"bash", "fish", "zsh"}));
  EXPECT_EQ(offered({"train", "--re"}), (Words{"--resume"}));
  EXPECT_TRUE(offers({"bench", "train", "--"}, "--profile"));
  EXPECT_FALSE(offers({"bench", "train", "--"}, "--resume"));  // that is one of `train`
  EXPECT_TRUE(offers({"-"}, "--version"));
}

TEST_F(Completion, BashOffersFilesWhereOneIsExpected) {
  put_text(folder_ / "a.toml", "");
  EXPECT_EQ(offered({"train", "a."}), (Words{"a.toml"}));
  EXPECT_EQ(offered({"tokenizer", "train", "--out", "a."}), (Words{"a.toml"}));
  EXPECT_EQ(offered({"train", "--threads", "a."}), Words{});
}

TEST_F(Completion, EveryShellKnowsEveryFlag) {
  std::istringstream flags(run("reference flags").out);
  const std::string bash = run("completion bash").out, zsh = run("completion zsh").out,
                    fish = run("completion fish").out;
  int count = 0;
  for (std::string line; std::getline(flags, line);) {
    const std::string name =
        line.substr(line.find('\t') + 1, line.find('\t', line.find('\t') + 1) - line.find('\t') - 1);
    if (!name.starts_with("--")) continue;
    ++count;
    EXPECT_NE(bash.find(name), std::string::npos) << name;
    EXPECT_NE(zsh.find("'" + name + ":"), std::string::npos) << name;
    EXPECT_NE(fish.find(" -l " + name.substr(2)), std::string::npos) << name;
  }
  EXPECT_GT(count, 50);
}

TEST_F(Completion, ShellsThatAreThereTakeTheScripts) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    put_text(folder_ / shell, run(std::string("completion ") + shell).out);
    const std::string check = std::string("! command -v ") + shell + " >/dev/null || " + shell + " -n ";
    EXPECT_EQ(system((check + in_quotes(folder_ / shell)).c_str()), 0) << shell;
  }
}

}  // namespace
}  // namespace mh::cli
