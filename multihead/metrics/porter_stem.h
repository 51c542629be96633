// The stem of an English word by Porter's algorithm, with the exceptions that NLTK's PorterStemmer makes.
#pragma once

#include <string>

namespace mh::detail {

// "relational" → "relat". The word is of a-z and 0-9; what is no vowel counts as a consonant.
std::string porter_stem(std::string word);

}  // namespace mh::detail
