// What the metrics ask of their input, and say of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh::detail {

// Throws: invalid_argument, naming `metric`, where there is no sentence, or one without reference.
void check_corpus(std::string_view metric, const std::vector<std::string>& hypotheses,
                  const std::vector<std::vector<std::string>>& references);

// "nrefs:2|case:mixed", the number "var" where it differs between sentences.
std::string signature_start(const std::vector<std::vector<std::string>>& references, bool lower_case);
// "version:multihead-0.1.0"
std::string signature_end();

}  // namespace mh::detail
