// `multihead average`: one model from several.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/output_file.h"
#include "cli/say.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "multihead/base/printable.h"
#include "multihead/io/safetensors.h"
#include "multihead/train/average.h"

namespace mh::cli {
namespace {

struct AverageChoice {
  std::vector<std::string> files;
  std::string out, dtype, tokenizer;
};

constexpr const char* kAverageEnd =
    "Of a checkpoint, the model's weights are taken. The mean of the last checkpoints of a run often translates\n"
    "better than the last one alone:\n"
    "\n"
    "  multihead average run/checkpoints/step-*.safetensors --out run/model.safetensors\n"
    "\n"
    "One file alone is converted: --dtype f16 halves a model, and --tokenizer makes the file name its tokenizer, so\n"
    "that no other is accepted beside it.";

AverageOptions options_of(const AverageChoice& choice) {
  AverageOptions options;
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    if (choice.dtype == name(type)) options.stored = type;
  if (!choice.tokenizer.empty()) options.tokenizer = {choice.tokenizer, Tokenizer::load(choice.tokenizer)};
  return options;
}

int run(const AverageChoice& choice) {
  std::vector<std::string> inputs = choice.files;
  inputs.push_back(choice.tokenizer);
  check_output("--out", choice.out, inputs);
  const Safetensors mean = average_weights(choice.files, options_of(choice));
  write_safetensors(choice.out, mean);
  if (!quiet())
    fmt::print("{}: the mean of {} file{}, {} tensors\n", printable_path(choice.out), choice.files.size(),
               choice.files.size() == 1 ? "" : "s", mean.tensors.size());
  return kDone;
}

}  // namespace

void add_average(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("average", "write the mean of the weights of several models or checkpoints");
  auto choice = std::make_shared<AverageChoice>();
  verb->add_option("FILES", choice->files, "safetensors files with the same tensors, or checkpoints of a training run")
      ->type_name("")
      ->required();
  verb->add_option("--out", choice->out, "the file to write")->type_name("FILE")->required();
  verb->add_option("--dtype", choice->dtype, "store floats so; without it, as in FILES")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16", "f16"}));
  verb->add_option("--tokenizer", choice->tokenizer, "the tokenizer.json of the models, where FILES name none")
      ->type_name("FILE");
  verb->footer(kAverageEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
