// A disk that takes nothing more: every verb that writes says so in one sentence and leaves what was there.
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "bench/report.h"
#include "tests/cli/run_program.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

// No byte may be written to a file; a pipe takes what it took.
constexpr const char* kFull = "ulimit -f 0;";

// Every file below a folder, with what it holds; the lock of a run holds nothing.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != ".lock")
      out[entry.path().string()] = text_of(entry.path().string());
  return out;
}

class FullDisk : public Program {
 protected:
  // Runs it on a full disk; returns what it says.
  std::string refusal(const std::string& arguments) const {
    const auto before = contents(folder_.path());
    const Ran ran = run(arguments, true, kFull);
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_EQ(contents(folder_.path()), before) << arguments;
    return ran.out;
  }
  TemporaryFolder folder_;
};

TEST_F(FullDisk, LeavesTheOldFileOfEveryVerb) {
  test::write_translator(folder_.path());
  put_text(folder_ / "test.tsv", "the cat\tdie Katze\n");
  put_text(folder_ / "out", "old");
  const std::string model = in_quotes(folder_ / "model.safetensors"), out = in_quotes(folder_ / "out"),
                    pairs = in_quotes(folder_ / "test.tsv");
  for (const std::string& arguments :
       {"tokenizer train " + pairs + " --vocabulary 262 --out " + out,
        "eval " + in_quotes(folder_.path()) + " " + pairs + " --output " + out, "average " + model + " --out " + out}) {
    const std::string said = refusal(arguments);
    // Progress may stand before it.
    EXPECT_TRUE(said.ends_with("multihead: cannot write " + out + ": File too large\n")) << arguments << "\n" << said;
  }
  EXPECT_EQ(text_of(folder_ / "out"), "old");
}

TEST_F(FullDisk, LeavesARunAsItWas) {
  std::string pairs;
  for (int n = 0; n < 30; ++n) pairs += "one " + std::to_string(n) + "\teins " + std::to_string(n) + "\n";
  put_text(folder_ / "pairs.tsv", pairs);
  put_text(folder_ / "a.toml",
           "[model]\nwidth = 8\nheads = 2\nfeed_forward = 8\nencoder_layers = 1\ndecoder_layers = 1\n"
           "[tokenizer]\nvocabulary = 270\n[data]\ntrain = \"" +
               (folder_ / "pairs.tsv") + "\"\ntokens_per_batch = 64\n[train]\noutput = \"" + (folder_ / "run") +
               "\"\n");
  const std::string train = "train " + in_quotes(folder_ / "a.toml") + " --set train.steps=";
  const std::string fresh = refusal(train + "1");
  EXPECT_NE(fresh.find("multihead: cannot write '" + (folder_ / "run/config.toml") + "': File too large\n"),
            std::string::npos)
      << fresh;
  ASSERT_EQ(run(train + "1").code, 0);
  const std::string resumed = refusal(train + "2 --resume");
  EXPECT_NE(resumed.find("multihead: cannot write '" + (folder_ / "run/config.toml") + "': File too large\n"),
            std::string::npos)
      << resumed;
  EXPECT_EQ(run(train + "2 --resume").code, 0);
}

TEST_F(FullDisk, LeavesTheRecordOfABenchmark) {
  const std::string path = bench::record({}, folder_.path()).string();
  const auto before = contents(folder_.path());
  ASSERT_EQ(before.size(), 2u);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const Refusal refused = refusal_of([&] { bench::record({}, folder_.path()); });
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(refused.sentence, "cannot write '" + path + "': File too large");
  EXPECT_EQ(contents(folder_.path()), before);
}

}  // namespace
}  // namespace mh::cli
