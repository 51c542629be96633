// Checkpoints: given back bit for bit, refused when a byte differs, and one is always there.
#include "multihead/io/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "multihead/io/safetensors.h"
#include "tests/harness/child.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNumbers = 5000;

// Every number of it says the step, so that a mixture of two would show.
Checkpoint checkpoint_of(int64_t step) {
  return {.step = step,
          .tensors = {{"model.weight", full({kNumbers}, static_cast<double>(step))},
                      {"optimizer.steps", full({}, static_cast<double>(step), DType::i64)}},
          .state = R"({"step": )" + std::to_string(step) + "}"};
}

void expect_step(const Checkpoint& checkpoint, int64_t step) {
  EXPECT_EQ(checkpoint.step, step);
  EXPECT_EQ(checkpoint.state, checkpoint_of(step).state);
  ASSERT_EQ(checkpoint.tensors.size(), 2u);
  const Tensor& weight = checkpoint.tensors.at("model.weight");
  ASSERT_TRUE(weight.shape() == Shape({kNumbers}));
  for (int64_t i = 0; i < kNumbers; ++i) ASSERT_EQ(weight.data<float>()[i], static_cast<float>(step));
  EXPECT_EQ(checkpoint.tensors.at("optimizer.steps").data<int64_t>()[0], step);
}

std::vector<std::string> names(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& path : list_checkpoints(folder)) out.push_back(fs::path(path).filename().string());
  return out;
}

TEST(Checkpoint, GivesBackWhatWasSaved) {
  const TemporaryFolder folder;
  save_checkpoint(folder / "run/checkpoints", checkpoint_of(1200));
  EXPECT_TRUE(fs::exists(folder / "run/checkpoints/step-00001200.safetensors"));
  std::vector<std::string> warnings;
  const std::optional<Checkpoint> loaded = load_newest_checkpoint(folder / "run/checkpoints", &warnings);
  ASSERT_TRUE(loaded.has_value());
  expect_step(*loaded, 1200);
  EXPECT_TRUE(warnings.empty());
}

TEST(Checkpoint, IsAnOrdinarySafetensorsFile) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "best", checkpoint_of(3));
  EXPECT_EQ(read_safetensors(folder / "best").tensors.at("model.weight").item({0}), 3);
}

TEST(Checkpoint, TheSameCheckpointGivesTheSameBytes) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a", checkpoint_of(3));
  write_checkpoint(folder / "b", read_checkpoint(folder / "a"));
  EXPECT_EQ(text_of(folder / "a"), text_of(folder / "b"));
}

TEST(Checkpoint, KeepsTheNewestAndThePreviousOne) {
  const TemporaryFolder folder;
  for (const int64_t step : {100, 200, 300}) save_checkpoint(folder.path(), checkpoint_of(step));
  EXPECT_EQ(names(folder.path()), (std::vector<std::string>{"step-00000300.safetensors", "step-00000200.safetensors"}));
  save_checkpoint(folder.path(), checkpoint_of(123456789), 1);
  EXPECT_EQ(names(folder.path()), (std::vector<std::string>{"step-123456789.safetensors"}));
  EXPECT_TRUE(refusal_of([&] { save_checkpoint(folder.path(), checkpoint_of(1), 0); }).says("keep is 0"));
}

TEST(Checkpoint, KeepsTheBestBesideTheNewest) {
  const TemporaryFolder folder;
  for (const int64_t step : {100, 200, 300, 400}) save_checkpoint(folder.path(), checkpoint_of(step), 1, 200);
  EXPECT_EQ(names(folder.path()), (std::vector<std::string>{"step-00000400.safetensors", "step-00000200.safetensors"}));
  save_checkpoint(folder.path(), checkpoint_of(500), 2, 400);  // among the newest: not one more
  EXPECT_EQ(names(folder.path()), (std::vector<std::string>{"step-00000500.safetensors", "step-00000400.safetensors"}));
}

TEST(Checkpoint, CountsOnlyUpToItsOwnStepWhenItDeletes) {
  const TemporaryFolder folder;
  for (const int64_t step : {100, 200}) save_checkpoint(folder.path(), checkpoint_of(step));
  put_text(folder / "step-00000900.safetensors", "what a broken disk left of a later one");
  save_checkpoint(folder.path(), checkpoint_of(300));
  std::vector<std::string> warnings;
  expect_step(load_newest_checkpoint(folder.path(), &warnings).value(), 300);
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(names(folder.path()).size(), 3u);
  EXPECT_EQ(names(folder.path()).back(), "step-00000200.safetensors");
}

TEST(Checkpoint, FindsOnlyWhatIsNamedAsOne) {
  const TemporaryFolder folder;
  EXPECT_FALSE(load_newest_checkpoint(folder.path()).has_value());
  EXPECT_FALSE(load_newest_checkpoint(folder / "missing").has_value());
  for (const char* name : {"step-5.safetensors", "step-0000000x.safetensors", "step--0000001.safetensors",
                           "step-00000005.safetensors.tmp-0123456789abcdef", "best.safetensors"})
    put_text(folder / name, "x");
  EXPECT_FALSE(load_newest_checkpoint(folder.path()).has_value());
  EXPECT_TRUE(refusal_of([&] { load_newest_checkpoint(folder / "best.safetensors"); }).says("Not a directory"));
}

TEST(Checkpoint, EveryChangedByteAndEveryCutIsFound) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "file", {.step = 7, .tensors = {{"x", tensor<float>({1, 2}, {2})}}, .state = "{}"});
  const std::string whole = text_of(folder / "file");
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x20'}) {
      std::string altered = whole;
      altered[at] = static_cast<char>(altered[at] ^ flip);
      put_text(folder / "file", altered);
      EXPECT_NE(refusal_of([&] { read_checkpoint(folder / "file"); }).sentence, "no refusal") << at;
    }
    put_text(folder / "file", whole.substr(0, at));
    EXPECT_EQ(refusal_of([&] { read_checkpoint(folder / "file"); }).kind, ErrorKind::io) << at;
  }
  put_text(folder / "file", whole);
  EXPECT_EQ(read_checkpoint(folder / "file").step, 7);
}

TEST(Checkpoint, PassesOverTheDamagedAndSaysSo) {
  const TemporaryFolder folder;
  for (const int64_t step : {100, 200, 300}) save_checkpoint(folder.path(), checkpoint_of(step), 3);
  std::string altered = text_of(folder / "step-00000300.safetensors");
  altered.back() = static_cast<char>(altered.back() ^ 1);
  put_text(folder / "step-00000300.safetensors", altered);
  fs::resize_file(folder / "step-00000200.safetensors", 4000);

  std::vector<std::string> warnings;
  expect_step(load_newest_checkpoint(folder.path(), &warnings).value(), 100);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("step-00000300.safetensors': the file is damaged"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("step-00000200.safetensors'"), std::string::npos) << warnings[1];
  EXPECT_NE(warnings[1].find("cut short"), std::string::npos) << warnings[1];

  fs::resize_file(folder / "step-00000100.safetensors", 0);
  const Refusal refusal = refusal_of([&] { load_newest_checkpoint(folder.path()); });
  EXPECT_EQ(refusal.kind, ErrorKind::io);
  EXPECT_TRUE(refusal.says("none of the 3")) << refusal.sentence;
}

TEST(Checkpoint, AnotherSafetensorsFileIsNone) {
  const TemporaryFolder folder;
  write_safetensors(folder / "file", {.tensors = {}, .metadata = {{"a", "b"}}});
  EXPECT_TRUE(refusal_of([&] { read_checkpoint(folder / "file"); }).says("it is not a checkpoint"));
  const std::string header =
      R"({"__metadata__":{"multihead.step":"1","multihead.state":""},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  ASSERT_LT(header.size(), 128u);
  put_text(folder / "file", length + header + "x");
  EXPECT_TRUE(refusal_of([&] { read_checkpoint(folder / "file"); }).says("the metadata lacks its hash"));
}

TEST(Checkpoint, RefusesANegativeStep) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal_of([&] { write_checkpoint(folder / "file", checkpoint_of(-1)); }).kind,
            ErrorKind::invalid_argument);
  EXPECT_EQ(folder.files(), 0u);
}

// Saves one step after the other until it is killed.
[[noreturn]] void save_for_ever(const std::string& folder, int64_t first) {
  try {
    for (int64_t step = first;; ++step) save_checkpoint(folder, checkpoint_of(step));
  } catch (...) {
    _exit(1);
  }
}

TEST(Checkpoint, OneIsAlwaysWholeWheneverTheSaverIsKilled) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), checkpoint_of(0));
  std::mt19937 random(1);
  int64_t newest = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = fork_child();
    ASSERT_GE(child, 0);
    if (child == 0) save_for_ever(folder.path(), newest + 1);
    usleep(static_cast<useconds_t>(random() % 20000));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;

    std::vector<std::string> warnings;
    const std::optional<Checkpoint> loaded = load_newest_checkpoint(folder.path(), &warnings);
    ASSERT_TRUE(loaded.has_value());
    EXPECT_TRUE(warnings.empty()) << warnings.front();
    EXPECT_GE(loaded->step, newest);
    newest = loaded->step;
    expect_step(*loaded, newest);
  }
  EXPECT_GT(newest, 0) << "no child lived long enough to save";
  save_checkpoint(folder.path(), checkpoint_of(newest + 1));
  EXPECT_EQ(folder.files(), 2u) << "what the killed left behind is gone";
}

}  // namespace
}  // namespace mh
