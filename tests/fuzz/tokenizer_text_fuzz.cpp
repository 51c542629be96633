// Any bytes as text: without a normaliser they come back as they were; with one nothing breaks.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace {

mh::Tokenizer trained(bool prefix_space, mh::Normalisation normalisation) {
  const std::vector<std::string> lines = {"the then there these", "aaaa aaaaaaaa aaaaaaaaaaaa", "über über 你好 你好",
                                          "\xff\xff\xff"};
  return mh::train_bpe(lines, {.vocabulary = 300,
                               .prefix_space = prefix_space,
                               .lowercase = normalisation != mh::Normalisation::none,
                               .normalisation = normalisation,
                               .min_frequency = 1});
}

void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mh::Tokenizer spaced = trained(true, mh::Normalisation::none);
  static const mh::Tokenizer plain = trained(false, mh::Normalisation::none);
  static const mh::Tokenizer folded = trained(true, mh::Normalisation::nfkc);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  must(spaced.decode(spaced.encode(text)) == text);
  must(plain.decode(plain.encode(text)) == text);
  folded.decode(folded.encode(text));
  return 0;
}
