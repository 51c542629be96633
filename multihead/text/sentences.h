// Cuts a text into its sentences.
#pragma once

#include <string_view>
#include <vector>

namespace mh {

// A sentence where it stands in its text, and the white space before it.
struct SentenceSpan {
  std::string_view space{}, text{};
};

// By ICU's rules for English (Unicode, UAX #29), which also end a sentence at a line's end; and no sentence ends
//   - with an abbreviation that something follows: Mr. Dr. e.g. U.S. z. B., an initial (J.), a number of one or two
//   digits
//     (3. Mai);
//   - within quotation marks that the sentence goes on behind: "Why?" she asked;
//   - before it has a letter or a digit: ( ?! and ... stay with the sentence before them.
// What it is in doubt about stays together. The spans cover the text from its beginning to its last character that is
// not white space; none where there is no such character. The text is whole UTF-8. They view `text`.
std::vector<SentenceSpan> sentences(std::string_view text);

}  // namespace mh
