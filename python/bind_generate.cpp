// Translation models for multihead/model.py: translating, aligning and recorded attention.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "multihead/generate/text/translator.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/model_file.h"
#include "multihead/show/recording.h"
#include "python/array.h"
#include "python/bindings.h"

namespace mh::python {

using namespace nb::literals;

namespace {

// A translator and what its folder tells beyond it. Every method may be called from many threads at once.
class TranslatorObject {
 public:
  TranslatorObject(const std::string& folder, DType compute)
      : translator(Translator::load(folder, compute)),
        tokenizer(Tokenizer::load(folder + "/tokenizer.json")),
        metadata(read_safetensors(folder + "/model.safetensors", {.verify = false}).metadata) {}

  Translator translator;
  Tokenizer tokenizer;
  std::map<std::string, std::string> metadata;
};

// Python has checked the types.
template <class T>
T wanted(const nb::dict& options, const char* name) {
  return nb::cast<T>(options[name]);
}

WritingRules rules_of(const nb::dict& o) {
  WritingRules rules;
  rules.max_length = wanted<int64_t>(o, "max_length");
  rules.min_length = wanted<int64_t>(o, "min_length");
  rules.repetition_penalty = static_cast<float>(wanted<double>(o, "repetition_penalty"));
  rules.no_repeat_ngram = wanted<int64_t>(o, "no_repeat");
  return rules;
}

SearchOptions search_of(const nb::dict& o) {
  SearchOptions out;
  out.beam = wanted<int64_t>(o, "beam");
  out.n_best = wanted<int64_t>(o, "n_best");
  out.patience = wanted<double>(o, "patience");
  const double alpha = wanted<double>(o, "alpha");
  if (wanted<bool>(o, "gnmt")) {
    out.penalty = GnmtPenalty{alpha};
  } else {
    out.penalty = PowerPenalty{alpha};
  }
  out.rules = rules_of(o);
  out.batch.tokens = wanted<int64_t>(o, "batch");
  return out;
}

SamplingOptions sampling_of(const nb::dict& o) {
  SamplingOptions out;
  out.samples = wanted<int64_t>(o, "n_best");
  out.temperature = static_cast<float>(wanted<double>(o, "temperature"));
  out.top_k = wanted<int64_t>(o, "top_k");
  out.top_p = wanted<double>(o, "top_p");
  out.min_p = wanted<double>(o, "min_p");
  out.seed = wanted<uint64_t>(o, "seed");
  out.first_sentence = wanted<uint64_t>(o, "first_line");
  out.rules = rules_of(o);
  out.batch.tokens = wanted<int64_t>(o, "batch");
  return out;
}

nb::tuple written_by(const Hypothesis& hypothesis, const std::string& written) {
  return nb::make_tuple(written, hypothesis.score, nb::cast(hypothesis.ids), nb::cast(hypothesis.token_scores),
                        hypothesis.ended);
}

nb::tuple translation_tuple(const Translation& translation) {
  nb::list candidates;
  for (const Candidate& candidate : translation.candidates) {
    nb::list sentences;
    for (const TranslatedSentence& sentence : candidate.sentences)
      sentences.append(nb::make_tuple(sentence.source, sentence.space, written_by(sentence, sentence.text)));
    candidates.append(nb::make_tuple(written_by(candidate, candidate.text), sentences));
  }
  return nb::make_tuple(candidates, translation.source_tokens, translation.cut);
}

nb::list translated(const TranslatorObject& self, const std::vector<std::string>& lines, const nb::dict& options) {
  const bool samples = wanted<bool>(options, "sample");
  const SearchOptions search = samples ? SearchOptions() : search_of(options);
  const SamplingOptions sampling = samples ? sampling_of(options) : SamplingOptions();
  const TextOptions how{.split = !wanted<bool>(options, "whole")};
  std::vector<Translation> done;
  {
    nb::gil_scoped_release released;
    done = samples ? self.translator.sample(lines, sampling, how) : self.translator.translate(lines, search, how);
  }
  nb::list out;
  for (const Translation& each : done) out.append(translation_tuple(each));
  return out;
}

using WrittenSentences = std::vector<std::pair<std::string, std::vector<int32_t>>>;  // source, ids

std::vector<std::pair<int64_t, int64_t>> aligned(const TranslatorObject& self, const WrittenSentences& sentences,
                                                 int64_t layer) {
  Candidate candidate;
  for (const auto& [source, ids] : sentences) {
    TranslatedSentence sentence;
    sentence.source = source;
    sentence.ids = ids;
    candidate.sentences.push_back(std::move(sentence));
  }
  return self.translator.align(candidate, layer);
}

nb::tuple cross_attention_of(const TranslatorObject& self, const std::string& source, const std::vector<int32_t>& ids,
                             int64_t layer) {
  CrossAttention looked;
  {
    nb::gil_scoped_release released;
    Hypothesis written;
    written.ids = ids;
    looked = self.translator.cross_attention(source, written, layer);
    looked.weights = looked.weights.clone();
  }
  return nb::make_tuple(nb::cast(looked.source), nb::cast(looked.target), to_numpy(looked.weights));
}

// f32 (layers, heads, queries, keys).
Tensor stacked(const Recording& recording, AttentionKind kind) {
  const std::vector<const RecordedLayer*> layers = recording.of(kind);
  if (layers.empty()) return empty({0, 0, 0, 0});
  const RecordedLayer& first = *layers.front();
  const Tensor out = empty({static_cast<int64_t>(layers.size()), first.heads(), first.queries(), first.keys()});
  for (size_t n = 0; n < layers.size(); ++n) out.select(0, static_cast<int64_t>(n)).copy_from(layers[n]->weights());
  return out;
}

nb::tuple recorded_arrays(const TranslatorObject& self, const std::string& source, const std::vector<int32_t>& ids) {
  Recording recording;
  std::vector<Tensor> made;
  {
    nb::gil_scoped_release released;
    Hypothesis written;
    written.ids = ids;
    recording = record(self.translator, source, written);
    for (const AttentionKind kind : {AttentionKind::encoder, AttentionKind::decoder, AttentionKind::cross})
      made.push_back(stacked(recording, kind));
    made.push_back(recording.rollout(AttentionKind::encoder));
    made.push_back(recording.rollout(AttentionKind::decoder));
  }
  nb::list texts, arrays;
  for (const RecordedText& text : recording.texts)
    texts.append(nb::make_tuple(text.name, nb::cast(text.tokens), nb::cast(text.words)));
  for (const Tensor& each : made) arrays.append(to_numpy(each));
  return nb::make_tuple(texts, arrays);
}

}  // namespace

void bind_generate(nb::module_& m) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TranslatorObject>(m, "Translator", "What multihead.Model holds.")
      .def(
          "__init__",
          [](TranslatorObject* self, const std::string& folder, bool bf16) {
            new (self) TranslatorObject(folder, bf16 ? DType::bf16 : DType::f32);
          },
          "folder"_a, "bf16"_a, Release())
      .def("translate", translated, "lines"_a, "options"_a)
      .def("align", aligned, "sentences"_a, "layer"_a, Release())
      .def("cross_attention", cross_attention_of, "source"_a, "ids"_a, "layer"_a)
      .def("record", recorded_arrays, "source"_a, "ids"_a)
      .def("tokenizer", [](const TranslatorObject& self) { return self.tokenizer; })
      .def("metadata", [](const TranslatorObject& self) { return self.metadata; })
      .def("decoder_layers", [](const TranslatorObject& self) { return self.translator.decoder_layers(); });
}

}  // namespace mh::python
