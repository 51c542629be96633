// `multihead show` and --show of models other than our translators: Hugging Face's folders, and our language models.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/generate/tiny_language_model.h"
#include "tests/models/encoder_folder.h"
#include "tests/show/small_tokenizer.h"

namespace mh::cli {
namespace {

class ShowFolder : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    for (const char* name : {"bert_body", "bert_masked", "bert_question", "bert_sequence", "bert_token"})
      test::put_encoder(folder_ / name, name);
    test::put_encoder(folder_ / "t5_lm", "t5_lm");
    put_text(folder_ / "t5_lm/tokenizer.json", test::small_tokenizer_json());
    test::write_language_model(folder_ / "lm");
  }
  std::string page() const { return folder_ / "page.html"; }
  // The page that `show MODEL TEXT` writes.
  std::string shown(const std::string& model, const std::string& text) const {
    std::string quoted;
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    const Ran ran =
        run("show " + in_quotes(folder_ / model) + " " + in_quotes(quoted) + " -o " + in_quotes(page()), true);
    EXPECT_EQ(ran.code, 0) << ran.out;
    return taken();
  }
  // The page that a verb writes beside its answers.
  std::string beside(const std::string& verb, const std::string& model, const std::string& input) {
    put_text(folder_ / "in.txt", input);
    const std::string rest = " --show " + in_quotes(page()) + " < " + in_quotes(folder_ / "in.txt");
    last_ = run(verb + " " + in_quotes(folder_ / model) + rest, false);
    EXPECT_EQ(last_.code, 0) << last_.out;
    return taken();
  }
  std::string taken() const {
    const std::string text = text_of(page());
    std::filesystem::remove(page());
    return text;
  }
  static bool holds(const std::string& page, const std::string& tokens) {
    return page.find("\"tokens\":[" + tokens + "]") != std::string::npos;
  }
  TemporaryFolder folder_;
  Ran last_;
};

TEST_F(ShowFolder, EveryVerbShowsTheFirstLineThatIsNotBlank) {
  const std::string page = beside("embed --tsv", "bert_body", "\n \nthe cat\na dog\n");
  EXPECT_TRUE(holds(page, R"("[CLS]","the","cat","[SEP]")"));
  EXPECT_EQ(std::count(last_.out.begin(), last_.out.end(), '\n'), 4);
  EXPECT_TRUE(page == shown("bert_body", "the cat"));
  EXPECT_TRUE(beside("fill", "bert_masked", "the [MASK] sat\nno gap\n") == shown("bert_masked", "the [MASK] sat"));
  EXPECT_TRUE(beside("tag", "bert_token", "the cat\n") == shown("bert_token", "the cat"));
  EXPECT_TRUE(beside("classify", "bert_sequence", "\xFF\nthe cat\n") == shown("bert_sequence", "the cat"));
  EXPECT_TRUE(beside("embed --tsv --prompt 'a '", "bert_body", "cat\n") == shown("bert_body", "a cat"));
}

TEST_F(ShowFolder, PairsAndQuestionsStandBesideTheirContext) {
  EXPECT_TRUE(
      holds(beside("classify", "bert_sequence", "the cat\tsat\n"), R"("[CLS]","the","cat","[SEP]","sat","[SEP]")"));
  const char* asked = R"("[CLS]","who","sings","?","[SEP]","ada","sings","[SEP]")";
  EXPECT_TRUE(holds(beside("answer", "bert_question", "no tab\nwho sings ?\tada sings\n"), asked));
  EXPECT_TRUE(holds(beside("answer -q 'who sings ?'", "bert_question", "ada sings\n"), asked));
}

TEST_F(ShowFolder, WhatAModelWritesIsShownWithItsPrompt) {
  for (const std::string from : {"-p 'the cat' --json", "--json"}) {
    const std::string page = beside("generate -n 3 --greedy " + from, "lm", "the cat\n");
    const std::string text = nlohmann::json::parse(last_.out).at("text");
    EXPECT_TRUE(page == shown("lm", "the cat" + text)) << from << text;
  }
  const std::string own = shown("t5_lm", "the dog");
  EXPECT_TRUE(holds(own, R"("the","dog")"));
  EXPECT_NE(own.find("Cross-attention"), std::string::npos);
  EXPECT_TRUE(own == beside("generate -p 'the dog'", "t5_lm", ""));
  ASSERT_EQ(run("show " + in_quotes(folder_ / "t5_lm") + " a --written 'it sees' -o " + in_quotes(page())).code, 0);
  EXPECT_NE(taken().find(R"(,"it","sees"])"), std::string::npos);  // read behind the decoder's start
}

TEST_F(ShowFolder, OlderFormsOfTokenizersAreRead) {
  const std::string wanted = shown("bert_body", "the cat");
  std::string vocabulary;
  for (const char* word : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "the", "sat", "on", "mat"})
    vocabulary += std::string(word) + "\n";
  std::filesystem::remove(folder_ / "bert_body/tokenizer.json");
  put_text(folder_ / "bert_body/vocab.txt", vocabulary);
  EXPECT_TRUE(shown("bert_body", "the cat") == wanted);
}

TEST_F(ShowFolder, WhatCannotBeShownIsOneEarlySentence) {
  const auto says = [&](const std::string& arguments, const std::string& part) {
    const Ran ran = run(arguments + " < /dev/null", true);
    EXPECT_NE(ran.code, 0) << arguments;
    EXPECT_NE(ran.out.find(part), std::string::npos) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
  };
  const std::string to = " -o " + in_quotes(page());
  test::put_encoder(folder_ / "vit_image", "vit_image");
  says("show " + in_quotes(folder_ / "vit_image") + to, "reads images; expected a model that reads text");
  says("show " + in_quotes(folder_ / "bert_body") + " a --written b" + to, "has no decoder behind an encoder");
  says("show " + in_quotes(folder_ / "lm") + " a --written b" + to, "has no decoder behind an encoder");
  says("fill " + in_quotes(folder_ / "bert_masked") + " --show /proc/nowhere/page.html", "/proc/nowhere");
  says("fill " + in_quotes(folder_ / "bert_masked") + " --show " + in_quotes(folder_ / "bert_masked/config.json"),
       "--show");
  EXPECT_FALSE(std::filesystem::exists(page()));
  put_text(folder_ / "in.txt",
           std::string(2000, 'a') + " the" + std::string(2000, ' ') + "cat a a a a a a a a a a a a\n");
  const Ran cut =
      run("show " + in_quotes(folder_ / "bert_body") + to + " --file " + in_quotes(folder_ / "in.txt"), true);
  EXPECT_EQ(cut.out, "multihead show: the text is too long for the model; the page shows its beginning\n");
}

}  // namespace
}  // namespace mh::cli
