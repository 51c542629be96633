// Hugging Face folders for multihead/pretrained.py: one forward pass, generation, recording, writing back.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "multihead/generate/generation_config.h"
#include "multihead/generate/models/pretrained_generator.h"
#include "multihead/generate/search.h"
#include "multihead/generate/text/text_stream.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/show/record_pretrained.h"
#include "python/array.h"
#include "python/bindings.h"
#include "python/recording_object.h"

namespace mh::python {

using namespace nb::literals;

namespace {

using Ids = std::vector<int32_t>;
using Lengths = std::vector<int64_t>;

// Every method may be called from many threads at once.
struct PretrainedObject {
  PretrainedObject(const std::string& path, DType type)
      : folder(path), compute(type), facts(folder_facts(path)), model(Pretrained::load(path, {.compute = type})) {}

  std::string folder;
  DType compute;
  FolderFacts facts;
  Pretrained model;
};

TokenBatch token_batch_of(const Site& site, nb::handle ids, const Lengths& lengths) {
  if (ids.is_none()) return {};
  return {copy_integers(site, ids), Sequences::of_lengths(lengths)};
}

ModelInputs model_inputs(const nb::dict& given) {
  ModelInputs out;
  out.tokens = token_batch_of({"forward", "input_ids"}, given["input_ids"], nb::cast<Lengths>(given["lengths"]));
  out.decoder = token_batch_of({"forward", "decoder_input_ids"}, given["decoder_input_ids"],
                               nb::cast<Lengths>(given["decoder_lengths"]));
  if (!given["token_type_ids"].is_none())
    out.types = copy_integers({"forward", "token_type_ids"}, given["token_type_ids"]);
  if (!given["pixel_values"].is_none()) out.pixels = copy_floats({"forward", "pixel_values"}, given["pixel_values"]);
  out.hidden_states = nb::cast<bool>(given["hidden_states"]);
  out.attentions = nb::cast<bool>(given["attentions"]);
  return out;
}

Lengths lengths_in(const Sequences& at) {
  Lengths out;
  if (!at.starts) return out;
  const int32_t* starts = at.starts.data<int32_t>();
  for (int64_t b = 0; b < at.count(); ++b) out.push_back(starts[b + 1] - starts[b]);
  return out;
}

nb::tuple forward_pass(const PretrainedObject& self, const nb::dict& given) {
  const ModelInputs inputs = model_inputs(given);
  ModelOutputs outputs;
  {
    nb::gil_scoped_release released;
    outputs = self.model.forward(inputs);
    for (auto& [name, tensor] : outputs.tensors) tensor = tensor.detach().contiguous();
    for (auto& [name, list] : outputs.layers)
      for (Tensor& tensor : list) tensor = tensor.detach().to(DType::f32).contiguous();
  }
  const nb::object none = numpy("empty")(0, numpy("float32"));
  const Array like({"forward", "an output"}, none);
  nb::dict tensors, layers;
  for (const auto& [name, tensor] : outputs.tensors) tensors[name.c_str()] = to_array(like, tensor);
  for (const auto& [name, list] : outputs.layers) {
    nb::list arrays;
    for (const Tensor& tensor : list) arrays.append(to_array(like, tensor));
    layers[name.c_str()] = arrays;
  }
  return nb::make_tuple(tensors, layers, lengths_in(outputs.at), lengths_in(outputs.decoder_at));
}

using Written = std::tuple<Ids, double, bool>;  // ids, score, ended

// `config`: the keys of a generation_config.json.
std::vector<std::vector<Written>> written_behind(const PretrainedObject& self, const Prompts& prompts,
                                                 const std::string& config, uint64_t seed) {
  GenerationConfig how = read_generation_config(config, "generate");
  how.search.batch.compute = how.sampling.batch.compute = self.compute;
  how.sampling.seed = seed;
  const PretrainedGenerator generator(self.model, how.decoder_start);
  std::vector<std::vector<Written>> out;
  for (const auto& hypotheses :
       how.sample ? sample(generator, prompts, how.sampling) : search(generator, prompts, how.search)) {
    auto& texts = out.emplace_back();
    for (const Hypothesis& each : hypotheses) texts.emplace_back(each.ids, each.score, each.ended);
  }
  return out;
}

// The text that `ids` add behind a prompt, of which a decoder behind an encoder is told nothing.
nb::bytes text_behind(const PretrainedObject& self, const Tokenizer& tokenizer, const Ids& prompt, const Ids& ids) {
  detail::TextStream stream(tokenizer, self.model.architecture().cross_attention ? Ids() : prompt);
  std::string text;
  for (const int32_t id : ids) text += stream.add(id);
  text += stream.rest();
  return nb::bytes(text.data(), text.size());
}

// `written`: ids, of a model with encoder and decoder.
RecordingObject recorded(const PretrainedObject& self, const Tokenizer& tokenizer, const std::string& text,
                         const std::optional<std::string>& pair, const std::optional<Ids>& written) {
  RecordInput input{.text = text, .pair = pair};
  if (written) input.written = *written;
  return {record(self.model, tokenizer, input)};
}

// What the model is, by the names that pretrained.py reads.
nb::dict described(const PretrainedObject& self) {
  const Architecture& a = self.model.architecture();
  nb::dict out;
  out["class"] = a.model_class;
  // Models that no verb runs are classifiers or embedders here: pretrained.py refuses their texts by their heads.
  const std::string verb(self.facts.verb()), otherwise = a.head.kind == HeadKind::contrastive ? "embed" : "classify";
  out["verb"] = verb.empty() ? otherwise : verb;
  out["description"] = self.facts.description();
  out["config"] = a.config;
  out["labels"] = a.labels;
  out["outputs"] = a.head.outputs;
  out["problem_type"] = a.problem_type;
  out["cross_attention"] = a.cross_attention && !a.patches;
  out["choice"] = a.head.kind == HeadKind::choice;
  out["rows"] = a.head.rows == HeadRows::all;
  out["unused"] = self.model.unused();
  return out;
}

}  // namespace

void bind_pretrained(nb::module_& m) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<PretrainedObject>(m, "Pretrained", "What multihead.Pretrained holds.")
      .def(
          "__init__",
          [](PretrainedObject* self, const std::string& folder, bool bf16) {
            new (self) PretrainedObject(folder, bf16 ? DType::bf16 : DType::f32);
          },
          "folder"_a, "bf16"_a, Release())
      .def("forward", forward_pass, "inputs"_a)
      .def("write", written_behind, "prompts"_a, "config"_a, "seed"_a, Release())
      .def("text", text_behind, "tokenizer"_a, "prompt"_a, "ids"_a)
      .def("record", recorded, "tokenizer"_a, "text"_a, "pair"_a.none(), "written"_a.none(), Release())
      .def(
          "save", [](const PretrainedObject& self, const std::string& folder) { self.model.save(folder); }, "folder"_a,
          Release())
      .def("described", described);
  m.def(
      "unread_generation_keys",
      [](const std::string& config) { return read_generation_config(config, "generate").unread; }, "config"_a);
}

}  // namespace mh::python
