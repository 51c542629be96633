// The page that explains attention: the formula on a small example, every number visible, inputs that can be changed.
#pragma once

#include <string>

namespace mh {

// One HTML file that needs nothing else. It holds the library's own numbers of the example it opens with; the page's
// script computes them, and those of the reader's inputs, again.
std::string attention_explained_html();

}  // namespace mh
