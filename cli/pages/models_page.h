// The docs' page of pretrained models, made from the tables of families.
#pragma once

#include <string>

namespace mh::cli {

// docs/models.md: every family, the classes of its heads, the verb of each.
std::string models_page();

}  // namespace mh::cli
