// What tasks share that train models of Hugging Face's families: which folder describes the model, and its weights.
#pragma once

#include <string>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/data/labels.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

// Whether there is FOLDER/config.json, as folders of Hugging Face's have it.
bool is_pretrained_folder(const std::string& folder);

namespace detail {

// The folder whose config.json describes the model: that of a run that is gone on with, or model.from; empty: neither.
std::string describing_folder(const TaskSetup& setup);

// Copies those weights whose name and shape fit; a classifier's last map only where its labels are the same ones. Says
// through on_message how many others are fresh.
void copy_weights(const Pretrained& from, const Architecture& to, ParamStore& store, const TaskEvents& events);

// Names of a classifier's outputs: those of its config, LABEL_n for what it leaves out. Throws: invalid_argument,
// naming the folder, where there are more names than outputs.
Labels labels_of_folder(const Pretrained& model, const std::string& folder);

}  // namespace detail

}  // namespace mh
