// How long a text may be by the word of the files beside a tokenizer.
#pragma once

#include <cstdint>
#include <string>

namespace mh {

// model_max_length of FOLDER/tokenizer_config.json, in tokens; 2^20 where there is no such file or it has no limit
// (some write 1e30). Throws: io for a file that is no JSON object.
int64_t tokenizer_limit(const std::string& folder);

}  // namespace mh
