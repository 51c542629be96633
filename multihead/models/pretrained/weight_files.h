// The weights of a Hugging Face folder: one safetensors file, or the shards that an index names.
#pragma once

#include <map>
#include <string>

#include "multihead/io/safetensors.h"

namespace mh {

struct WeightFiles {
  NamedTensors tensors;                         // mapped
  std::map<std::string, std::string> metadata;  // of the one file, or of the first shard
};

// FOLDER/model.safetensors, or the files beside FOLDER/model.safetensors.index.json that it names; each tensor stands
// in exactly the shard that the index says. Throws: io, naming the file, where none is there, one breaks its format, a
// shard's name is not that of a file in the folder, or index and shards differ; as read_safetensors.
WeightFiles read_weights(const std::string& folder, const SafetensorsOptions& options = {});

// The shard of each tensor, by an index's weight_map. Throws: io, where it breaks its format or a shard's name is not
// that of a file in the folder.
std::map<std::string, std::string> read_shard_index(const std::string& path);

}  // namespace mh
