// A Hugging Face folder as far as it says what it is: its config, its tensors, its head.
#pragma once

#include <string>

#include "multihead/models/pretrained/families.h"
#include "multihead/models/pretrained/weight_files.h"

namespace mh {

struct FolderParts {
  Architecture architecture;  // with the kind of its head, not its plan
  WeightFiles files;
  bool guessed = false;  // config.json names no family: it was told by the tensors
};

// `as`: the family where config.json has no model_type. Throws: io where the folder holds no config.json, and as
// read_config, read_weights and head_of.
FolderParts read_folder(const std::string& folder, const std::string& as = {}, const SafetensorsOptions& options = {});

// The family whose tensors these are, by names that no other has; empty where none or several could be.
std::string guessed_family(const NamedTensors& file);

}  // namespace mh
