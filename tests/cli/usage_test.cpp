// The sentence about a word the program does not know.
#include "cli/usage.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace mh::cli {
namespace {

struct Program {
  CLI::App app{"", "multihead"};
  bool quick = false;
  bool slow = false;
  std::string name;
  int threads = 0;

  Program() {
    app.add_subcommand("doctor", "");
    CLI::App* table = app.add_subcommand("bench", "")->add_subcommand("attention", "");
    CLI::Option* wanted = table->add_flag("--quick", quick);
    table->add_flag("--slow", slow)->excludes(wanted);
    table->add_option("--case", name)->needs(wanted);
    table->add_option("--threads", threads);
  }
};

TEST(Usage, KnownWordsPass) {
  const Program program;
  EXPECT_EQ(unknown_word(program.app, {"bench", "attention", "--quick", "--threads", "-1", "--threads=2"}),
            std::nullopt);
  EXPECT_EQ(unknown_word(program.app, {}), std::nullopt);
}

TEST(Usage, UnknownVerbNamesTheNearest) {
  const Program program;
  EXPECT_EQ(unknown_word(program.app, {"docto"}), "multihead: there is no command 'docto'; did you mean 'doctor'?");
  EXPECT_EQ(unknown_word(program.app, {"bench", "atention"}),
            "multihead bench: there is no command 'atention'; did you mean 'attention'?");
}

TEST(Usage, UnknownFlagNamesTheNearest) {
  const Program program;
  EXPECT_EQ(unknown_word(program.app, {"bench", "attention", "--thread=3"}),
            "multihead bench attention: there is no flag '--thread'; did you mean '--threads'?");
}

TEST(Usage, AFlagBeforeItsVerbIsToldWhereItBelongs) {
  const Program program;
  EXPECT_EQ(unknown_word(program.app, {"bench", "--quick"}),
            "multihead bench: '--quick' is a flag of 'multihead bench attention'; write it after that");
}

TEST(Usage, AStrangerIsToldWhatThereIs) {
  const Program program;
  EXPECT_EQ(unknown_word(program.app, {"zzz"}), "multihead: there is no command 'zzz'; expected one of doctor, bench");
}

TEST(Usage, HiddenVerbsAreTakenAndNotOffered) {
  Program program;
  program.app.add_subcommand("zzzz", "")->group("");
  EXPECT_EQ(unknown_word(program.app, {"zzzz"}), std::nullopt);
  EXPECT_EQ(unknown_word(program.app, {"zzz"}), "multihead: there is no command 'zzz'; expected one of doctor, bench");
}

// What is said of words that CLI11 refuses.
std::string said_of(Program& program, std::vector<std::string> words) {
  try {
    program.app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return in_our_words(*program.app.get_subcommand("bench")->get_subcommand("attention"), error);
  }
  return "nothing";
}

TEST(Usage, WhatDoesNotFitTogetherIsSaidInOurWords) {
  const auto said = [](std::vector<std::string> words) {
    Program program;
    words.insert(words.begin(), {"bench", "attention"});
    return said_of(program, words);
  };
  EXPECT_EQ(said({"--threads", "2"}), "nothing");
  EXPECT_EQ(said({"--threads"}), "--threads has no value");
  EXPECT_EQ(said({"--threads", "1", "--threads", "2"}), "--threads is given more than once");
  EXPECT_EQ(said({"more"}), "unexpected argument 'more'");
  EXPECT_EQ(said({"--case", "x"}), "--case goes with --quick");
  EXPECT_EQ(said({"--quick", "--slow"}), "--quick does not go with --slow");
}

}  // namespace
}  // namespace mh::cli
