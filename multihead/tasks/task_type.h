// The table of tasks: what the configuration, the trainer and the verbs ask of each kind. A new task is a row.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "multihead/tasks/task.h"
#include "multihead/tasks/task_setup.h"
#include "multihead/tensor/named_tensors.h"

namespace mh {

// A model whose weights a run starts from.
struct StartModel {
  TransformerConfig config{};
  NamedTensors weights{};
  std::map<std::string, std::string> metadata{};  // of its file, with the config as config_to_json writes it
};

struct TaskType {
  TaskKind kind;
  std::string name;                     // the word of task.kind
  std::string learns;                   // for the page of keys: "sentence pairs, by an encoder and a decoder"
  std::string examples;                 // what data.train holds: "pairs"
  std::string model;                    // the word "kind" in the config of its model's file
  std::string use;                      // the rest of a command line that uses a trained FOLDER
  bool encoder = true, decoder = true;  // the stacks its model has
  bool recurrent = false;               // its model may be a recurrent net
  bool judges_itself = false;           // its training data hold what it is validated on
  bool families = false;                // its model may be one of Hugging Face's families, model.kind and model.from

  // Whether the settings fit the task. Throws: invalid_argument, naming the keys.
  void (*check)(const TaskSetup& setup);
  // Reads a model's file. Throws: as read_safetensors; invalid_argument where it is not such a model.
  StartModel (*start)(const std::string& path);
  std::unique_ptr<Task> (*make)(const TaskSetup& setup);
};

// In the order in which pages show them.
const std::vector<TaskType>& task_types();
const TaskType& task_type(TaskKind kind);

// The kind of model that a file of ours holds, "transformer"; empty where it has no config. Throws: as
// read_safetensors.
std::string model_kind(const std::string& path);

// The same of FOLDER/model.safetensors; of a folder of Hugging Face's the task of its head, "classify", "tag",
// "answer", "image_class" or "speech_class". Empty, too, where there is no such file.
std::string model_kind_of_folder(const std::string& folder);

// The rows of the table, each beside its task.
TaskType translation_type();
TaskType language_model_type();
TaskType classify_type();
TaskType tag_type();
TaskType answer_type();
TaskType recommend_type();
TaskType image_class_type();
TaskType speech_class_type();

}  // namespace mh
