// Which model a verb uses where none is named.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mh::cli {

// `named`, where it is; else MULTIHEAD_MODEL of the environment; else models/en-de, the model that comes with
// the project, in this folder or beside the program (in a folder above it, or in its share/multihead).
// Throws: io, naming the places, where there is none; invalid_argument where `named` is empty text.
std::string model_folder(const std::optional<std::string>& named);

// The files of a model's folder, and of the folders in it, that say what it is, by their endings: weights,
// configurations, vocabularies. A verb that uses the model may not write over them.
std::vector<std::string> files_of(const std::string& folder);

}  // namespace mh::cli
