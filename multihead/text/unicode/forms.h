// Normal forms and lower case exactly as Hugging Face's tokenizers make them.
#pragma once

#include <string>
#include <string_view>

namespace mh::detail {

enum class Form { nfc, nfd, nfkc, nfkd };

// ICU's result, but characters that Hugging Face's older tables do not know stay as they are and part the text before
// them from the text behind. `text` is UTF-8.
std::string to_form(std::string_view text, Form form);

// Each character by its own mapping, whatever stands around it. `text` is UTF-8.
std::string to_lower(std::string_view text);

}  // namespace mh::detail
