// `multihead average`: one model from several.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "multihead/base/printable.h"
#include "multihead/io/safetensors.h"
#include "multihead/train/average.h"

namespace mh::cli {

void add_average(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("average", "write the mean of the weights of several models or checkpoints");
  auto files = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  verb->add_option("FILES", *files, "safetensors files with the same tensors, or checkpoints of a training run")
      ->type_name("")
      ->required();
  verb->add_option("--out", *out, "the file to write")->type_name("FILE")->required();
  verb->footer(
      "Of a checkpoint, the model's weights are taken. The mean of the last checkpoints of a run often translates\n"
      "better than the last one alone:\n"
      "\n"
      "  multihead average run/checkpoints/step-*.safetensors --out run/model.safetensors");
  verb->callback([files, out, &code] {
    const Safetensors mean = average_weights(*files);
    write_safetensors(*out, mean);
    fmt::print("{}: the mean of {} file{}, {} tensors\n", printable_path(*out), files->size(),
               files->size() == 1 ? "" : "s", mean.tensors.size());
    code = kDone;
  });
}

}  // namespace mh::cli
