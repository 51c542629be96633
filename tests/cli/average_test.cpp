// `multihead average`: the file it writes, and what it refuses before it writes any.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "multihead/io/safetensors.h"
#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

using Average = Program;

TEST_F(Average, WritesTheMean) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {.tensors = {{"w", tensor<float>({1, 2}, {2})}}, .metadata = {}});
  write_safetensors(folder / "b", {.tensors = {{"w", tensor<float>({3, 5}, {2})}}, .metadata = {}});
  const Ran ran =
      run("average " + in_quotes(folder / "a") + " " + in_quotes(folder / "b") + " --out " + in_quotes(folder / "c"));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, in_quotes(folder / "c") + ": the mean of 2 files, 1 tensors\n");
  const Tensor mean = read_safetensors(folder / "c").tensors.at("w");
  EXPECT_EQ(mean.item({0}), 2);
  EXPECT_EQ(mean.item({1}), 3.5);
}

TEST_F(Average, RefusesInOneSentenceAndWritesNothing) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {.tensors = {{"w", tensor<float>({1, 2}, {2})}}, .metadata = {}});
  write_safetensors(folder / "b", {.tensors = {{"w", tensor<float>({3}, {1})}}, .metadata = {}});
  const std::pair<std::string, int> wrong[] = {
      {in_quotes(folder / "a") + " " + in_quotes(folder / "b") + " --out " + in_quotes(folder / "c"), 1},
      {in_quotes(folder / "a") + " " + in_quotes(folder / "missing") + " --out " + in_quotes(folder / "c"), 1},
      {in_quotes(folder / "a") + " --out " + in_quotes(folder / "no/folder/c"), 1},
      {in_quotes(folder / "a"), 2},
      {"--out " + in_quotes(folder / "c"), 2},
  };
  for (const auto& [arguments, code] : wrong) {
    const Ran ran = run("average " + arguments, true);
    EXPECT_EQ(ran.code, code) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
  }
  EXPECT_EQ(folder.files(), 2u);
}

TEST_F(Average, NamesTheFileAndTheTensorThatHoldANan) {
  const TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write_safetensors(folder / "a",
                    {.tensors = {{"v", tensor<float>({1}, {1})}, {"w", tensor<float>({1, 2}, {2})}}, .metadata = {}});
  write_safetensors(folder / "b",
                    {.tensors = {{"v", tensor<float>({1}, {1})}, {"w", tensor<float>({1, nan}, {2})}}, .metadata = {}});
  const Ran ran = run(
      "average " + in_quotes(folder / "a") + " " + in_quotes(folder / "b") + " --out " + in_quotes(folder / "c"), true);
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "multihead: average: tensor 'w' of '" + (folder / "b") + "' holds a NaN; expected numbers\n");
  EXPECT_EQ(folder.files(), 2u);
}

}  // namespace
}  // namespace mh::cli
