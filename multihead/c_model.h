// What the calls of the C ABI for models share: the model behind the opaque pointer, texts in, results out.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "multihead/c_boundary.h"
#include "multihead/c_models.h"
#include "multihead/generate/text/text_generator.h"
#include "multihead/generate/text/translator.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/tasks/verbs/answerer.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tasks/verbs/embedder.h"
#include "multihead/tasks/verbs/filler.h"
#include "multihead/tasks/verbs/tagger.h"
#include "multihead/tasks/verbs/zero_shot.h"

namespace mh::detail {

// A task's model, loaded once, by whichever thread comes first; a load that fails is tried again by the next call.
template <class Task>
class LoadedOnce {
 public:
  const Task& get(const std::string& folder, DType compute) {
    const std::lock_guard lock(mutex_);
    if (!task_) task_ = Task::load(folder, compute);
    return *task_;
  }

 private:
  std::mutex mutex_;
  std::optional<Task> task_;
};

}  // namespace mh::detail

struct mh_result {
  std::string text;
};

struct mh_model {
  std::string folder{}, verb{};
  mh::DType compute = mh::DType::f32;
  mh::FolderFacts facts{};
  mutable mh::detail::LoadedOnce<mh::Classifier> classifier{};
  mutable mh::detail::LoadedOnce<mh::ZeroShotClassifier> zero_shot{};
  mutable mh::detail::LoadedOnce<mh::Tagger> tagger{};
  mutable mh::detail::LoadedOnce<mh::Answerer> answerer{};
  mutable mh::detail::LoadedOnce<mh::Filler> filler{};
  mutable mh::detail::LoadedOnce<mh::Embedder> embedder{};
  mutable mh::detail::LoadedOnce<mh::TextGenerator> generator{};
  mutable mh::detail::LoadedOnce<mh::Translator> translator{};
};

namespace mh::detail {

using Strings = std::vector<std::string>;

// Throws: invalid_argument for a null model; for one of another task, by the name of the call that it is for.
void check_task(const char* op, const mh_model* model, bool (*fits)(const FolderFacts& facts));

template <class Options>
Options given_options(const char* op, const Options* options) {
  return options ? known_part(op, "options", options) : Options{};
}

// `what` stands in the sentences. Throws: invalid_argument for a null list or string, and a count below 0.
Strings strings_of(const char* op, const char* what, const char* const* list, int64_t count);

// Throws: as strings_of and known_part; invalid_argument where they are pairs.
Strings texts_alone(const char* op, const mh_texts* given);

// One value for each of `count` texts, as a JSON array.
template <class Value>
std::string array_of(size_t count, const Value& value) {
  std::string out = "[";
  for (size_t n = 0; n < count; ++n) {
    if (n > 0) out += ',';
    out += value(n);
  }
  return out + ']';
}

// `run` gives the text of the result, which is written where all went well.
template <class Run>
mh_status give_result(const char* op, mh_result** out, const Run& run) noexcept {
  return guarded([&] {
    check(out != nullptr, "{}: out is null; expected where to put the result", op);
    *out = new mh_result{run()};
  });
}

}  // namespace mh::detail
