// A tokenizer of as many words as the tiny models have tokens: "<u>", "a", "b", "c", "the", "dog", "sees", "it", "w8"
// ….
#pragma once

#include <fmt/format.h>

#include <string>

namespace mh::test {

inline std::string small_tokenizer_json() {
  std::string words = R"({"<u>":0,"a":1,"b":2,"c":3,"the":4,"dog":5,"sees":6,"it":7)";
  for (int id = 8; id < 64; ++id) words += fmt::format(R"(,"w{}":{})", id, id);
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
    "pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,
    "model":{"type":"WordLevel","vocab":)" +
         words + R"(},"unk_token":"<u>"}})";
}

}  // namespace mh::test
