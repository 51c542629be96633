// From a folder's weights to those of a run.
#include "multihead/tasks/models/start_weights.h"

#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/tensor/named_tensors.h"

namespace mh {

bool is_pretrained_folder(const std::string& folder) {
  std::error_code ignored;
  return !folder.empty() && std::filesystem::is_regular_file(folder + "/config.json", ignored);
}

namespace detail {

std::string describing_folder(const TaskSetup& setup) {
  const std::string run = std::filesystem::path(setup.tokenizer_file).parent_path().string();
  if (!setup.tokenizer_file.empty() && is_pretrained_folder(run)) return run;
  return is_pretrained_folder(setup.from) ? setup.from : "";
}

void copy_weights(const Pretrained& from, const Architecture& to, ParamStore& store, const TaskEvents& events) {
  const NamedTensors values = from.params().values();
  const bool same_labels = from.architecture().head.kind == to.head.kind &&
                           (to.head.kind == HeadKind::question || from.architecture().labels == to.labels);
  std::vector<std::string> fresh;
  for (const auto& param : store.all()) {
    const auto at = values.find(param->name);
    const bool is_head = param->name.starts_with("head.");
    if (at == values.end() || !(at->second.shape() == param->value.shape()) || (is_head && !same_labels))
      fresh.push_back(param->name);
    else
      param->value.detach().copy_from(at->second);
  }
  store.refresh_copies();
  if (!fresh.empty() && events.on_message)
    events.on_message(fmt::format("model.from: {} of {} tensors are fresh, the first is {}", fresh.size(),
                                  store.all().size(), fresh.front()));
}

Labels labels_of_folder(const Pretrained& model, const std::string& folder) {
  const Architecture& a = model.architecture();
  std::vector<std::string> labels = a.labels;
  for (auto n = static_cast<int64_t>(labels.size()); n < a.head.outputs; ++n)
    labels.push_back(fmt::format("LABEL_{}", n));
  check(static_cast<int64_t>(labels.size()) == a.head.outputs, "{}: config.json names {} labels, and the model has {}",
        printable_path(folder), labels.size(), a.head.outputs);
  return Labels::in_order(labels);
}

}  // namespace detail

}  // namespace mh
