// `multihead convert`: folders of older files made new ones, and our own translators Hugging Face's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cli/say.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "multihead/base/printable.h"
#include "multihead/models/convert/convert_folder.h"
#include "multihead/models/convert/to_huggingface.h"

namespace mh::cli {
namespace {

struct ConvertChoice {
  std::string from, to, dtype, as, form;
};

constexpr const char* kConvertEnd =
    "  multihead convert downloads/opus-mt-en-de models/opus                 pytorch_model.bin becomes safetensors\n"
    "  multihead convert models/minilm smaller --dtype bf16                  half the size\n"
    "  multihead convert models/en-de out --to huggingface                   our translator as a Pegasus\n"
    "\n"
    "OLD is a folder of Hugging Face's: config.json with model.safetensors or pytorch_model.bin, whole or in shards. NEW\n"
    "gets model.safetensors, tokenizer.json (made of vocab.txt, merges.txt or a SentencePiece model where there is none)\n"
    "and every other file as it is. No other verb reads a pickle, and this one runs nothing of it: what a file names\n"
    "besides tensors is refused.\n"
    "\n"
    "With --to huggingface OLD is a folder that `multihead train` made of an encoder-decoder with sinusoidal positions.\n"
    "docs/convert.md says more.";

std::optional<DType> stored_of(const ConvertChoice& choice) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    if (choice.dtype == name(type)) return type;
  return {};
}

void report(const std::string& to, const ConvertedFolder& made) {
  for (const std::string& each : made.notes) mention("{}", each);
  if (quiet()) return;
  fmt::print("{}: {} tensors, {:.1f} MB{}{}\n", printable_path(to), made.tensors,
             static_cast<double>(made.bytes) * 1e-6, made.description.empty() ? "" : ", a " + made.description,
             made.verb.empty() ? "" : fmt::format(": use `multihead {}`", made.verb));
}

int run(const ConvertChoice& choice) {
  if (choice.form == "huggingface") {
    check(choice.as.empty(),
          "convert: --as says the family of a folder of Hugging Face's; --to huggingface reads one of ours");
    check_new_folder(choice.from, choice.to);
    const Pretrained made = write_as_huggingface(choice.from, choice.to, stored_of(choice));
    if (!quiet()) fmt::print("{}: a {}\n", printable_path(choice.to), made.architecture().model_class);
    return kDone;
  }
  report(choice.to, convert_folder(choice.from, choice.to, {.stored = stored_of(choice), .as = choice.as}));
  return kDone;
}

}  // namespace

void add_convert(CLI::App& app, int& code) {
  CLI::App* verb =
      app.add_subcommand("convert", "make a folder of older files one of safetensors; write models for others");
  auto choice = std::make_shared<ConvertChoice>();
  verb->add_option("OLD", choice->from, "folder of the model")->type_name("")->required();
  verb->add_option("NEW", choice->to, "the folder to write: new, or empty")->type_name("")->required();
  verb->add_option("--dtype", choice->dtype, "store floats so; without it, as in OLD")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16", "f16"}));
  verb->add_option("--as", choice->as, "the family, where config.json has no model_type, as in bert")
      ->type_name("FAMILY");
  verb->add_option("--to", choice->form, "write a model of our own in this form")
      ->type_name("FORM")
      ->check(one_of({"huggingface"}));
  verb->footer(kConvertEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
