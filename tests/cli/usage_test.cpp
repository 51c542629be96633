// The sentence about a word the program does not know.
#include "cli/usage.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace mh::cli {
namespace {

struct Program {
  CLI::App app{"", "multihead"};
  bool quick = false;
  int threads = 0;

  Program() {
    app.add_subcommand("doctor", "");
    CLI::App* table = app.add_subcommand("bench", "")->add_subcommand("attention", "");
    table->add_flag("--quick", quick);
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

}  // namespace
}  // namespace mh::cli
