// What a folder's model does with texts, for multihead/text_model.py: the library's classes for the tasks.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/generate/text/text_generator.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/show/text_recorder.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/answerer.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tasks/verbs/embedder.h"
#include "multihead/tasks/verbs/filler.h"
#include "multihead/tasks/verbs/tagger.h"
#include "python/array.h"
#include "python/bindings.h"
#include "python/recording_object.h"

namespace mh::python {

using namespace nb::literals;

namespace {

using Strings = std::vector<std::string>;

// A task's model, loaded when the first text comes. Safe in many threads.
template <class Task>
class OnDemand {
 public:
  template <class Load>
  const Task& get(const Load& load) {
    const std::lock_guard lock(mutex_);
    if (!task_) task_ = load();
    return *task_;
  }

 private:
  std::mutex mutex_;
  std::optional<Task> task_;
};

// Every method may be called from many threads at once.
struct TasksObject {
  TasksObject(std::string path, bool bf16) : folder(std::move(path)), compute(bf16 ? DType::bf16 : DType::f32) {}
  template <class Task>
  const Task& of(OnDemand<Task>& task) {
    return task.get([this] { return Task::load(folder, compute); });
  }

  std::string folder;
  DType compute;
  OnDemand<Classifier> classifier;
  OnDemand<Tagger> tagger;
  OnDemand<Embedder> embedder;
  OnDemand<Filler> filler;
  OnDemand<Answerer> answerer;
  OnDemand<TextGenerator> writer;
  OnDemand<TextRecorder> recorder;
};

// Loads what the verb needs, so that a damaged folder is refused at once.
void prepare(TasksObject& self, const std::string& verb) {
  if (verb == "classify") self.of(self.classifier);
  if (verb == "tag") self.of(self.tagger);
  if (verb == "generate") self.of(self.writer);
}

using Classified = std::tuple<std::string, float, std::vector<float>, bool>;  // label, score, scores, cut

std::vector<Classified> classified(TasksObject& self, const Strings& texts) {
  std::vector<Classified> out;
  for (Classification& each : self.of(self.classifier)(texts))
    out.emplace_back(std::move(each.label), each.score, std::move(each.scores), each.cut);
  return out;
}

using Entity = std::tuple<std::string, size_t, size_t, float>;  // label, bytes [begin, end), score
using Tagged = std::tuple<Strings, Strings, std::vector<Entity>, bool>;

std::vector<Tagged> tagged(TasksObject& self, const Strings& texts) {
  std::vector<Tagged> out;
  for (Tagging& each : self.of(self.tagger)(texts)) {
    std::vector<Entity> entities;
    for (TaggedSpan& span : each.entities)
      entities.emplace_back(std::move(span.label), span.begin, span.end, span.score);
    out.emplace_back(std::move(each.words), std::move(each.tags), std::move(entities), each.cut);
  }
  return out;
}

// `prompt`: what stands before each text; `prompt_name`: the folder's of that name; neither: the folder's default.
std::string prompt_of(const Embedder& embedder, const std::optional<std::string>& prompt,
                      const std::optional<std::string>& prompt_name) {
  if (prompt) return *prompt;
  if (!prompt_name) return embedder.default_prompt();
  const auto at = embedder.prompts().find(*prompt_name);
  if (at != embedder.prompts().end()) return at->second;
  std::string names;
  for (const auto& [name, text] : embedder.prompts()) names += (names.empty() ? "" : ", ") + name;
  fail(ErrorKind::invalid_argument, "model: prompt_name is '{}'; expected one of [{}]", *prompt_name, names);
}

// The vectors (texts, width), and which texts were cut.
nb::tuple embedded(TasksObject& self, const Strings& texts, const std::optional<std::string>& prompt,
                   const std::optional<std::string>& prompt_name) {
  Embeddings found;
  {
    nb::gil_scoped_release released;
    const Embedder& embedder = self.of(self.embedder);
    found = embedder(texts, prompt_of(embedder, prompt, prompt_name));
    if (texts.empty()) found.vectors = empty({0, embedder.width()});
  }
  return nb::make_tuple(to_numpy(found.vectors), found.cut);
}

using FillingTuple = std::tuple<std::string, int32_t, float, std::string>;  // token, id, score, text
using GapTuple = std::tuple<size_t, size_t, std::vector<FillingTuple>>;     // bytes [begin, end), fillings
using FilledTuple = std::tuple<std::vector<GapTuple>, bool>;                // gaps, cut

std::vector<FilledTuple> filled(TasksObject& self, const Strings& texts, int64_t k) {
  std::vector<FilledTuple> out;
  for (Filled& each : self.of(self.filler)(texts, k)) {
    std::vector<GapTuple> gaps;
    for (Gap& gap : each.gaps) {
      std::vector<FillingTuple> fillings;
      for (Filling& one : gap.fillings)
        fillings.emplace_back(std::move(one.token), one.id, one.score, std::move(one.text));
      gaps.emplace_back(gap.begin, gap.end, std::move(fillings));
    }
    out.emplace_back(std::move(gaps), each.cut);
  }
  return out;
}

using AnswerTuple = std::tuple<std::string, size_t, size_t, float>;  // text, bytes [begin, end) of the context, score

std::vector<AnswerTuple> answered(TasksObject& self, const std::vector<std::tuple<std::string, std::string>>& asked,
                                  const std::tuple<int64_t, int64_t, int64_t, bool>& how) {
  const AnswerOptions options{.max_length = std::get<0>(how),
                              .stride = std::get<1>(how),
                              .longest_answer = std::get<2>(how),
                              .no_answer = std::get<3>(how)};
  std::vector<Question> questions;
  for (const auto& [question, context] : asked) questions.push_back({question, context});
  std::vector<AnswerTuple> out;
  for (Answer& each : self.of(self.answerer)(questions, options))
    out.emplace_back(std::move(each.text), each.begin, each.end, each.score);
  return out;
}

// `config`: the keys of a generation_config.json.
std::vector<std::vector<nb::bytes>> continued(TasksObject& self, const Strings& prompts, const std::string& config,
                                              uint64_t seed) {
  std::vector<std::vector<Continuation>> written;
  {
    nb::gil_scoped_release released;
    GenerationConfig how = read_generation_config(config, "generate");
    how.sampling.seed = seed;
    written = self.of(self.writer).write(prompts, how);
  }
  std::vector<std::vector<nb::bytes>> out;
  for (const auto& texts : written) {
    auto& each = out.emplace_back();
    for (const Continuation& one : texts) each.emplace_back(one.text.data(), one.text.size());
  }
  return out;
}

RecordingObject recorded_text(TasksObject& self, const std::string& text, const std::optional<std::string>& pair) {
  const TextRecorder& recorder = self.recorder.get([&] { return TextRecorder::load(self.folder); });
  return {recorder({.text = text, .pair = pair})};
}

// Of a model of our own: its config and what it is.
nb::dict described_folder(const std::string& folder) {
  const FolderFacts facts = folder_facts(folder);
  nb::dict out;
  out["verb"] = std::string(facts.verb());
  out["head"] = std::string(name_of(facts.head));
  out["config"] = read_safetensors(folder + "/model.safetensors", {.verify = false}).metadata.at(kConfigKey);
  return out;
}

}  // namespace

void bind_tasks(nb::module_& m) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TasksObject>(m, "Tasks", "What multihead.Pretrained and multihead.TaskModel do with texts.")
      .def(nb::init<std::string, bool>(), "folder"_a, "bf16"_a)
      .def("prepare", prepare, "verb"_a, Release())
      .def("classify", classified, "texts"_a, Release())
      .def("tag", tagged, "texts"_a, Release())
      .def("embed", embedded, "texts"_a, "prompt"_a.none(), "prompt_name"_a.none())
      .def("fill", filled, "texts"_a, "k"_a, Release())
      .def("answer", answered, "questions"_a, "how"_a, Release())
      .def("record", recorded_text, "text"_a, "pair"_a.none(), Release())
      .def("write", continued, "prompts"_a, "config"_a, "seed"_a);
  m.def("describe_folder", described_folder, "folder"_a);
  m.def("model_kind", model_kind_of_folder, "folder"_a);
}

}  // namespace mh::python
