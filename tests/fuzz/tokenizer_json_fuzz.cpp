// Any bytes as a tokenizer.json: refused with an Error, or a tokenizer that holds what it promises.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/text/tokenizer.h"

namespace {

// Every byte, broken and whole, among words.
std::string text_of_all_kinds() {
  std::string out = "The dog's </s> <pad> 12 über  ÄÖ\n";
  for (int byte = 0; byte < 256; ++byte) out.push_back(static_cast<char>(byte));
  return out + std::string(60, 'a') + " 你好 e\xcc\x81";
}

void must(bool holds) {
  if (!holds) std::abort();
}

void use(const mh::Tokenizer& tokenizer) {
  static const std::string text = text_of_all_kinds();
  const std::string json = tokenizer.json();
  const mh::Tokenizer again = mh::Tokenizer::parse(json, "again");
  must(again.json() == json);
  std::vector<int32_t> ids;
  try {
    ids = tokenizer.encode(text);
  } catch (const mh::Error&) {  // a text with words the file has no token for, and no unknown token
    return;
  }
  must(again.encode(text) == ids);
  tokenizer.decode(ids);
  try {
    const mh::Encoded whole = tokenizer.encode_input(text);
    must(whole.offsets.size() == whole.ids.size() && whole.words.size() == whole.ids.size());
    for (const mh::TextSpan& span : whole.offsets) must(span.begin <= text.size() && span.end <= text.size());
    tokenizer.encode_pair_windows(text, text, {.max_length = 20, .stride = 2});
  } catch (const mh::Error&) {  // as above, or special tokens alone are too many
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mh::Tokenizer tokenizer;
  try {
    tokenizer = mh::Tokenizer::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const mh::Error&) {
    return 0;
  }
  use(tokenizer);
  return 0;
}
