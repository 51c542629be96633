// Writes the page of a translation.
#pragma once

#include <string>

#include "multihead/generate/text/translator.h"
#include "multihead/show/page.h"

namespace mh::cli {

// Of the candidate's first sentence. Throws: invalid_argument where it has none (a line of white space); as page_html
// and write_durably.
void write_page(const std::string& path, const Translator& translator, const std::string& model,
                const Candidate& candidate, const PageOptions& options);

}  // namespace mh::cli
