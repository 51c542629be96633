// A tiny encoder's folder with a tokenizer beside it, for tests that begin with text.
#pragma once

#include <filesystem>
#include <iterator>
#include <string>

#include "tests/harness/temporary_folder.h"

#ifndef MH_TEST_DATA
#define MH_TEST_DATA ""
#endif

namespace mh::test {

// Of 19 words, with [CLS] and [SEP] around them: the vocabulary of the tiny BERTs.
inline std::string tiny_tokenizer() {
  const char* words[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",    "cat", "dog", "the", "sat",
                         "on",    "mat",   "who",   "sings", "ada",    "rome", "in",  ".",   "?"};
  std::string vocabulary, added;
  for (size_t id = 0; id < std::size(words); ++id) {
    const std::string comma = id > 0 ? "," : "", name = "\"" + std::string(words[id]) + "\"";
    vocabulary += comma + name + ":" + std::to_string(id);
    if (id < 5)
      added += comma + "{\"id\":" + std::to_string(id) + ",\"content\":" + name +
               ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}";
  }
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" + added +
         R"(],"normalizer":{"type":"Lowercase"},"pre_tokenizer":{"type":"Whitespace"},"post_processor":)"
         R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},)"
         R"({"SpecialToken":{"id":"[SEP]","type_id":0}}],"pair":[{"SpecialToken":{"id":"[CLS]","type_id":0}},)"
         R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}},{"Sequence":{"id":"B","type_id":1}},)"
         R"({"SpecialToken":{"id":"[SEP]","type_id":1}}],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},)"
         R"("[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},)"
         R"("model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,)"
         R"("vocab":{)" +
         vocabulary + "}}}";
}

// tests/models/golden/families/NAME, and the tokenizer.
inline void put_encoder(const std::string& folder, const std::string& name) {
  std::filesystem::create_directories(folder);
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(std::string(MH_TEST_DATA) + "/models/golden/families/" + name + "/" + file,
                               folder + "/" + file, std::filesystem::copy_options::overwrite_existing);
  put_text(folder + "/tokenizer.json", tiny_tokenizer());
}

}  // namespace mh::test
