// Checkpoints: everything a training run needs to go on, in files that are whole or refused.
//
// A checkpoint is a safetensors file whose metadata holds the step and the trainer's state. Its hash (safetensors.h) is
// required and always checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "multihead/tensor/named_tensors.h"

namespace mh {

struct Checkpoint {
  int64_t step = 0;
  // Model weights, optimiser moments, …; whose a tensor is, its name says.
  NamedTensors tensors;
  // The rest as text, JSON by custom: random numbers, data position, configuration.
  std::string state;
};

// Whether a file with this metadata says that it is a checkpoint.
bool is_checkpoint(const std::map<std::string, std::string>& metadata);

// One file, durably. Throws: invalid_argument for a negative step and as write_safetensors, before anything is written;
// io, and then the file that was at `path` is as it was.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Throws: io where the file cannot be read, is not a checkpoint, or is not as it was written.
Checkpoint read_checkpoint(const std::string& path);

// Writes FOLDER/step-00001200.safetensors, making the folder where it is missing; then, and only then, deletes all but
// the newest `keep` of the checkpoints up to this step and that of `best_step`, and what writers that were killed left
// behind. One process at a time may save to a folder. Throws: as write_checkpoint; invalid_argument for keep < 1.
void save_checkpoint(const std::string& folder, const Checkpoint& checkpoint, int keep = 2, int64_t best_step = -1);

// The paths of the checkpoints in a folder, the highest step first; none where there is no such folder.
std::vector<std::string> list_checkpoints(const std::string& folder);

// The newest that is whole; nothing where the folder holds none. What was passed over, and why, goes to `warnings`, a
// sentence each. Throws: io where there are checkpoints and none is whole.
std::optional<Checkpoint> load_newest_checkpoint(const std::string& folder,
                                                 std::vector<std::string>* warnings = nullptr);

}  // namespace mh
