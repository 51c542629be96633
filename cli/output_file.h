// The files a verb writes, looked at before the work.
#pragma once

#include <string>
#include <vector>

namespace mh::cli {

// Throws invalid_argument where `path`, which `flag` named, is one of the files that are read, or the standard input,
// by whatever name: a link, another path.
void refuse_input_as_output(const std::string& flag, const std::string& path, const std::vector<std::string>& inputs);

// The same, and io where the file cannot be written.
void check_output(const std::string& flag, const std::string& path, const std::vector<std::string>& inputs);

}  // namespace mh::cli
