// Runs the program: exit codes, sentences, and the JSON that others read.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/exit_code.h"
#include "tests/cli/run_program.h"

namespace {

using namespace mh::cli;
using Json = nlohmann::json;

std::set<std::string> keys(const Json& object) {
  std::set<std::string> out;
  for (const auto& [key, value] : object.items()) out.insert(key);
  return out;
}

TEST_F(Program, HelpOfEveryCommandSucceeds) {
  for (const char* command : {"", "doctor", "selftest", "bench", "translate", "generate", "eval", "bench attention",
                              "bench gemm", "bench rows", "train", "inspect", "average", "tokenizer", "tokenizer train",
                              "tokenizer encode", "tokenizer decode"}) {
    const Ran ran = run(std::string(command) + " --help");
    EXPECT_EQ(ran.code, 0) << command;
    EXPECT_NE(ran.out.find("Usage: multihead " + std::string(command)), std::string::npos) << ran.out;
  }
  for (const char* flag : {"--version", "-V"}) {
    const Ran version = run(flag);
    EXPECT_EQ(version.code, 0);
    EXPECT_EQ(std::count(version.out.begin(), version.out.end(), '.'), 2) << version.out;
  }
  EXPECT_EQ(run("help bench attention").out, run("bench attention --help").out);
}

TEST_F(Program, HelpNamesLimitsAndExitCodes) {
  const std::string translate = run("translate --help").out;
  for (const char* part : {"--beam N", "[1 to 63]", "[f32, bf16]", "[above 0, at most 1]", "-q,--quiet"})
    EXPECT_NE(translate.find(part), std::string::npos) << part << "\n" << translate;
  const std::string all = run("--help").out;
  for (const ExitCode& each : kExitCodes) EXPECT_NE(all.find(each.meaning), std::string::npos) << all;
  EXPECT_EQ(all.find("  reference"), std::string::npos) << all;  // for those who make the docs
}

TEST_F(Program, QuietLeavesResultsAndErrors) {
  const auto said = [](const std::string& flags) {
    return run("bench rows --list --case embedding " + flags, true).out;
  };
  EXPECT_EQ(said("--quiet"), said(""));
  EXPECT_NE(run("selftest --cases 1", true).out.find("1 of 1 cases"), std::string::npos);
  EXPECT_EQ(run("selftest --cases 1 --quiet", true).out, run("selftest --cases 1").out);
  const Ran failed = run("inspect /none --quiet", true);
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(std::count(failed.out.begin(), failed.out.end(), '\n'), 1) << failed.out;
}

TEST_F(Program, HelpTellsANewcomerWhereToStart) {
  const Ran ran = run("--help");
  for (const char* word : {"multihead translate --attention", "multihead doctor", "multihead selftest",
                           "multihead bench attention --quick", "MH_CPU_ISA", "Exit codes"})
    EXPECT_NE(ran.out.find(word), std::string::npos) << word;
}

TEST_F(Program, WithoutAVerbShowsHelpAndRefuses) {
  const Ran ran = run("", true);
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.out.find("Usage: multihead"), std::string::npos);
  EXPECT_EQ(run("bench").code, 2);
}

TEST_F(Program, WrongWordsGetOneSentenceAndCode2) {
  const std::pair<const char*, const char*> wrong[] = {
      {"doctr", "did you mean 'doctor'?"},
      {"selftest --jsn", "did you mean '--json'?"},
      {"bench attentoin", "did you mean 'attention'?"},
      {"bench attention --dtype f31", "f31"},
      {"bench attention --threads none", "none"},
      {"bench attention --threads 0", "--threads"},
      {"doctor more", "more"},
      {"tokenizer train x --out y --normalise z", "expected one of none, nfc, nfkc"},
      {"translate --top-k 5", "--top-k goes with --sample"},
      {"translate --head 5", "--head goes with --attention"},
      {"translate --sample --beam 2", "--beam does not go with --sample"},
      {"eval models/en-de", "FILE.tsv is required"},
      {"translate --beam 64", "--beam: '64' does not fit; expected a whole number from 1 to 63"},
      {"translate --length-penalty power:x", "expected power[:ALPHA] or gnmt[:ALPHA], ALPHA from 0 to 100"},
      {"translate --length-penalty gnmt:101", "expected power[:ALPHA] or gnmt[:ALPHA], ALPHA from 0 to 100"},
      {"translate --min-length 5 --max-length 4", "--min-length: 5 is more than --max-length 4"},
      {"translate --sample --top-p 0", "expected a number above 0, at most 1"},
      {"bench rows --rung avx9", "expected one of baseline"},
      {"completion tcsh", "expected one of bash, zsh, fish"},
  };
  for (const auto& [arguments, part] : wrong) {
    const Ran ran = run(arguments, true);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_NE(ran.out.find(part), std::string::npos) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
  }
}

TEST_F(Program, DoctorNamesTheRungInUse) {
  const Ran text = run("doctor");
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("in use"), std::string::npos) << text.out;
  const Json json = Json::parse(run("doctor --json").out);
  EXPECT_EQ(keys(json),
            (std::set<std::string>{"version", "machine", "rung", "why", "rungs", "environment", "gpu", "notes"}));
  int in_use = 0;
  for (const Json& rung : json.at("rungs")) {
    if (rung.at("in_use")) {
      ++in_use;
      EXPECT_EQ(rung.at("name"), json.at("rung"));
      EXPECT_TRUE(rung.at("usable"));
    } else if (!rung.at("usable")) {
      EXPECT_FALSE(rung.at("why").get<std::string>().empty());
    }
  }
  EXPECT_EQ(in_use, 1);
  EXPECT_GE(json.at("machine").at("cpus_allowed"), 1);
}

TEST_F(Program, OutputThatIsLostIsNoSuccess) {
  for (const char* verb : {"doctor", "doctor --json", "--help"})
    EXPECT_EQ(run(std::string(verb) + " >/dev/full").code, 1) << verb;
}

TEST_F(Program, DoctorRefusesAnUnknownRungBeforeItPrints) {
  const Ran ran = run("doctor", true, "MH_CPU_ISA=none");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out.find("multihead: MH_CPU_ISA: no rung is named 'none'"), 0u) << ran.out;
}

TEST_F(Program, DoctorSaysWhatStopsTheClimb) {
  const Json all = Json::parse(run("doctor --json", false, "env -u MH_CPU_ISA").out);
  const std::string lowest = all.at("rungs").at(0).at("name");
  const Json stopped = Json::parse(run("doctor --json", false, "MH_CPU_ISA=" + lowest + " MH_THREADS=1").out);
  EXPECT_EQ(stopped.at("rung"), lowest);
  EXPECT_EQ(stopped.at("machine").at("threads"), 1);
  EXPECT_EQ(stopped.at("environment").at("MH_CPU_ISA"), lowest);
  if (all.at("rung") == lowest) return;
  EXPECT_NE(stopped.at("why").get<std::string>().find("MH_CPU_ISA"), std::string::npos);
}

TEST_F(Program, AnUnknownInstructionSetIsNamed) {
  const Ran ran = run("doctor", true, "MH_CPU_ISA=avx9");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("'avx9'"), std::string::npos) << ran.out;
  EXPECT_EQ(run("selftest --rung avx9").code, 2);
}

TEST_F(Program, SelftestPassesAndCountsWhatRan) {
  const std::string lowest = Json::parse(run("doctor --json").out).at("rungs").at(0).at("name");
  const Ran ran = run("selftest --json --cases 40 --rung " + lowest);
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(keys(json),
            (std::set<std::string>{"machine", "rung", "ran", "passed", "failed", "skipped", "hash", "failures"}));
  EXPECT_EQ(ran.code, 0) << json.at("failures");
  EXPECT_EQ(json.at("failed"), 0);
  EXPECT_EQ(json.at("passed"), json.at("ran"));
  EXPECT_GE(json.at("ran"), 1);
  EXPECT_EQ(json.at("rung"), lowest);
  EXPECT_TRUE(json.at("failures").empty());
}

const std::set<std::string> kRowKeys = {"case", "dtype",   "pass", "B",    "H",        "Hkv",
                                        "Tq",   "Tk",      "Dk",   "Dv",   "mask",     "threads",
                                        "rung", "seconds", "rate", "unit", "fraction", "fraction_p90"};

void expect_rows(const Json& report, const std::set<std::string>& passes) {
  for (const char* key : {"machine", "limits", "rows"}) EXPECT_TRUE(report.contains(key)) << key;
  EXPECT_GT(report.at("limits").at(0).at("fma_gflops"), 0);
  EXPECT_FALSE(report.at("rows").empty());
  for (const Json& row : report.at("rows")) {
    EXPECT_EQ(keys(row), kRowKeys);
    EXPECT_TRUE(passes.contains(row.at("pass"))) << row;
    const bool by_bytes = row.at("pass") == "decode" || row.at("pass") == "rows";
    EXPECT_EQ(row.at("unit"), by_bytes ? "GB/s" : "GFLOP/s");
    for (const char* key : {"seconds", "rate", "fraction", "fraction_p90"}) EXPECT_GT(row.at(key), 0) << row;
    EXPECT_LE(row.at("fraction"), row.at("fraction_p90")) << row;
  }
}

TEST_F(Program, BenchAttentionGivesRowsOfTheThreePasses) {
  const Ran ran = run("bench attention --json --seconds 0.01 --threads 1 --dtype f32 --case t32_d64,decode_h1_1_t4096");
  ASSERT_EQ(ran.code, 0);
  const Json report = Json::parse(ran.out);
  expect_rows(report, {"forward", "backward", "decode"});
  std::set<std::string> seen;
  for (const Json& row : report.at("rows")) {
    seen.insert(row.at("pass"));
    EXPECT_EQ(row.at("dtype"), "f32");
    EXPECT_EQ(row.at("threads"), 1);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"forward", "backward", "decode"}));
}

TEST_F(Program, BenchGemmGivesRowsOfTheSameForm) {
  const Ran ran = run("bench gemm --json --seconds 0.01 --threads 1 --case gemm_16x1024");
  ASSERT_EQ(ran.code, 0);
  expect_rows(Json::parse(ran.out), {"gemm"});
}

TEST_F(Program, BenchRowsGivesRowsOfTheSameForm) {
  const Ran ran = run("bench rows --json --seconds 0.01 --threads 1 --dtype bf16 --case norm,embedding");
  ASSERT_EQ(ran.code, 0);
  const Json report = Json::parse(ran.out);
  expect_rows(report, {"rows"});
  std::set<std::string> seen;
  for (const Json& row : report.at("rows")) seen.insert(row.at("case"));
  EXPECT_EQ(seen, (std::set<std::string>{"layer_norm", "layer_norm+backward", "embedding"}));
}

TEST_F(Program, BenchWithoutAFittingCaseSaysSo) {
  const Ran ran = run("bench attention --case nothing_like_it", true);
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("no case fits"), std::string::npos) << ran.out;
}

TEST_F(Program, RecordKeepsTheRowsOfEarlierRuns) {
  std::string folder = (std::filesystem::temp_directory_path() / "multihead-record-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string record = " --quick --seconds 0.01 --threads 1 --record " + in_quotes(folder);
  ASSERT_EQ(run("bench attention --dtype f32 --case t32_d64" + record).code, 0);
  ASSERT_EQ(run("bench attention --dtype bf16 --case t32_d64" + record).code, 0);
  ASSERT_EQ(run("bench attention --dtype f32 --case t32_d64" + record).code, 0);
  std::set<std::string> dtypes, endings;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    endings.insert(entry.path().extension().string());
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    const Json report = Json::parse(in);
    EXPECT_EQ(report.at("rows").size(), 2u);
    for (const Json& row : report.at("rows")) dtypes.insert(row.at("dtype"));
  }
  EXPECT_EQ(dtypes, (std::set<std::string>{"f32", "bf16"}));
  EXPECT_EQ(endings, (std::set<std::string>{".json", ".md"}));
  std::filesystem::remove_all(folder);
}

}  // namespace
