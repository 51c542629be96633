// Runs `multihead tokenizer`: files in, ids and texts out, one sentence where it cannot.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/text/tokenizer.h"
#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

class TokenizerVerb : public Program {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    put_text(path(name), text);
    return path(name);
  }
  // Trains on `text` with `flags`.
  Tokenizer trained(const std::string& text, const std::string& flags) const {
    const Ran ran = run("tokenizer train " + write("text.tsv", text) + " --out " + path("t.json") + " " + flags, true);
    EXPECT_EQ(ran.code, 0) << ran.out;
    return Tokenizer::load(path("t.json"));
  }
  // The one line with which the program refuses, at exit code `code`.
  std::string refusal(const std::string& arguments, int code) const {
    const Ran ran = run(arguments, true);
    EXPECT_EQ(ran.code, code) << arguments << ": " << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
    return ran.out;
  }

  TemporaryFolder folder_;
};

constexpr const char* kText = "the dog\tder Hund\nthe dogs\tdie Hunde\nthe cat\tdie Katze\n";

TEST_F(TokenizerVerb, TrainsAsTheLibraryDoes) {
  const std::vector<std::string> texts = {"the dog", "der Hund", "the dogs", "die Hunde", "the cat", "die Katze"};
  EXPECT_EQ(trained(kText, "--vocabulary 280").json(), train_bpe(texts, {.vocabulary = 280}).json());
  EXPECT_EQ(trained(kText, "--vocabulary 270 --lowercase --normalise nfkc --no-prefix-space --min-frequency 1").json(),
            train_bpe(texts, {.vocabulary = 270,
                              .prefix_space = false,
                              .lowercase = true,
                              .normalisation = Normalisation::nfkc,
                              .min_frequency = 1})
                .json());
}

TEST_F(TokenizerVerb, ColumnsChooseTheText) {
  EXPECT_EQ(trained(kText, "--vocabulary 280 --columns 2").json(),
            train_bpe({"der Hund", "die Hunde", "die Katze"}, {.vocabulary = 280}).json());
  EXPECT_EQ(trained(kText, "--vocabulary 280 --columns 2,1").json(), trained(kText, "--vocabulary 280").json());
  const std::string sentence =
      refusal("tokenizer train " + write("text.tsv", kText) + " --out " + path("x.json") + " --columns 3", 1);
  EXPECT_NE(sentence.find("text.tsv:1: the line has 2 columns; expected text in column 3"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("x.json")));
}

TEST_F(TokenizerVerb, ReadsTextByTheRuleOfAllVerbs) {
  const std::string plain = trained("the dog\nthe cat\n", "--vocabulary 270").json();
  EXPECT_EQ(trained("\xEF\xBB\xBFthe dog\r\nthe cat\n", "--vocabulary 270").json(), plain);
  write("broken.txt", "the dog\nna\xEFve\nthe cat\n");
  const Ran ran = run("tokenizer train --vocabulary 270 --out " + path("b.json") + " " + path("broken.txt"), true);
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("broken.txt: skipped 1 of 3 lines (line 2): not UTF-8 at byte 3"), std::string::npos)
      << ran.out;
  EXPECT_EQ(text_of(path("b.json")), plain);
  // Of "the dog\nthe cat\n": gzip -n9.
  write("text.txt", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2b\xc9\x48\x55\x48\xc9\x4f\xe7\x2a\x01\xd2"
                                "\xc9\x89\x25\x5c\x00\x13\xb7\x8d\x5d\x10\x00\x00\x00",
                                34));
  EXPECT_EQ(run("tokenizer train --vocabulary 270 --out " + path("g.json") + " " + path("text.txt")).code, 0);
  EXPECT_EQ(text_of(path("g.json")), plain);
}

TEST_F(TokenizerVerb, AByteOrderMarkIsNoText) {
  trained(kText, "--vocabulary 280");
  const std::string encode = "tokenizer encode " + path("t.json") + " < ";
  EXPECT_EQ(run(encode + write("a.txt", "\xEF\xBB\xBFthe dog\n")).out, run(encode + write("b.txt", "the dog\n")).out);
}

TEST_F(TokenizerVerb, LinesComeBackAsTheyWere) {
  trained(kText, "--vocabulary 280");
  const std::string text = "the dog's \t Hund\r\n\n  </s> \xff\xfe ü\nlast";
  const std::string file = write("in.txt", text);
  const Ran ids = run("tokenizer encode " + path("t.json") + " < " + file);
  EXPECT_EQ(ids.code, 0);
  write("ids.txt", ids.out);
  EXPECT_EQ(run("tokenizer decode " + path("t.json") + " < " + path("ids.txt")).out, text + "\n");
}

TEST_F(TokenizerVerb, TokensAndTimeAreShownOnDemand) {
  const Tokenizer tokenizer = trained(kText, "--vocabulary 280");
  write("in.txt", "the the\n");
  const std::string base = "tokenizer encode " + path("t.json") + " < " + path("in.txt");
  EXPECT_EQ(run(base).out, std::to_string(*tokenizer.id("Ġthe")) + " " + std::to_string(*tokenizer.id("Ġthe")) + "\n");
  EXPECT_EQ(run(base + " --tokens").out, "Ġthe Ġthe\n");
  const Ran timed = run(base + " --time", true);
  EXPECT_NE(timed.out.find("2 words in "), std::string::npos) << timed.out;
}

TEST_F(TokenizerVerb, WhatCannotBeDoneIsOneSentence) {
  trained(kText, "--vocabulary 280");
  const std::string train = "tokenizer train --out " + path("x.json") + " ";
  const std::string good = write("good.txt", "text\n");
  EXPECT_NE(refusal(train + path("none.txt"), 1).find("cannot read"), std::string::npos);
  EXPECT_NE(refusal(train + folder_.path(), 1).find("cannot read"), std::string::npos);
  EXPECT_NE(refusal(train + write("empty.txt", ""), 1).find("there is no text in"), std::string::npos);
  EXPECT_NE(refusal(train + write("blank.txt", "\n\n\n"), 1).find("there is no text in"), std::string::npos);
  EXPECT_NE(refusal(train + write("zstd.txt", "\x28\xb5\x2f\xfd"), 1).find("compressed with zstd"), std::string::npos);
  EXPECT_NE(refusal(train + good + " --vocabulary 100", 1).find("a vocabulary of 100"), std::string::npos);
  EXPECT_NE(refusal(train + good + " --columns 0", 2).find("--columns"), std::string::npos);
  EXPECT_NE(refusal(train + good + " --normalise nfd", 2).find("nfd"), std::string::npos);
  EXPECT_NE(refusal("tokenizer train " + good, 2).find("--out is required"), std::string::npos);
  EXPECT_NE(refusal("tokenizer train " + good + " --out " + path("none/x.json"), 1).find("cannot write"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("x.json")));
  EXPECT_NE(refusal("tokenizer encode " + path("none.json") + " < /dev/null", 1).find("cannot read"),
            std::string::npos);
  EXPECT_NE(refusal("tokenizer encode " + good + " < " + good, 1).find("no JSON"), std::string::npos);
  EXPECT_NE(refusal("tokenizer decode " + path("t.json") + " < " + good, 1).find("line 1: 'text' is not a token id"),
            std::string::npos);
  write("large.txt", "5 999999\n");
  EXPECT_NE(refusal("tokenizer decode " + path("t.json") + " < " + path("large.txt"), 1).find("999999 is not a token"),
            std::string::npos);
  EXPECT_EQ(run("tokenizer encode " + path("t.json") + " < " + good + " > /dev/full").code, 1);
}

}  // namespace
}  // namespace mh::cli
