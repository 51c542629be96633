// A tiny text-to-text model's folder with a tokenizer beside it: the golden ids of its family as words.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/temporary_folder.h"

#ifndef MH_TEST_DATA
#define MH_TEST_DATA ""
#endif

namespace mh::test {

inline nlohmann::json json_file(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

inline std::string golden_of(const std::string& name) {
  return std::string(MH_TEST_DATA) + "/models/golden/families/" + name;
}

// The token with id N is the word "wN"; `special` gives some of them another name and makes them special. `frame`: the
// ids before and behind each text.
struct WordTokens {
  std::map<int, std::string> special{};
  std::vector<int> before{}, behind{};
  int size = 23;
};

inline std::string word_of(const WordTokens& tokens, int id) {
  const auto named = tokens.special.find(id);
  return named != tokens.special.end() ? named->second : "w" + std::to_string(id);
}

inline std::string words_of_ids(const WordTokens& tokens, const std::vector<int>& ids) {
  std::string out;
  for (const int id : ids) out += (out.empty() ? "" : " ") + word_of(tokens, id);
  return out;
}

inline std::string word_tokenizer(const WordTokens& tokens) {
  using Json = nlohmann::ordered_json;
  Json vocabulary = Json::object(), added = Json::array(), single = Json::array(), specials = Json::object();
  for (int id = 0; id < tokens.size; ++id) vocabulary[word_of(tokens, id)] = id;
  for (const auto& [id, name] : tokens.special)
    added.push_back({{"id", id},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const auto place = [&](int id) {
    const std::string name = word_of(tokens, id);
    single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
    specials[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  for (const int id : tokens.before) place(id);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  for (const int id : tokens.behind) place(id);
  Json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 0}}}});
  const Json file{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", added},
                  {"normalizer", nullptr},
                  {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
                  {"post_processor",
                   {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}}},
                  {"decoder", nullptr},
                  {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", word_of(tokens, 5)}}}};
  return file.dump();
}

// tests/models/golden/families/NAME and a tokenizer that ends each text with the model's end.
inline WordTokens put_text_to_text(const std::string& folder, const std::string& name, WordTokens tokens = {}) {
  std::filesystem::create_directories(folder);
  for (const char* file : {"config.json", "generation_config.json", "model.safetensors"})
    std::filesystem::copy_file(golden_of(name) + "/" + file, folder + "/" + file,
                               std::filesystem::copy_options::overwrite_existing);
  const nlohmann::json config = json_file(folder + "/config.json");
  const int end = config.at("eos_token_id").get<int>(), pad = config.at("pad_token_id").get<int>();
  tokens.special.emplace(end, "</s>");
  tokens.special.emplace(pad, "<pad>");
  if (tokens.behind.empty()) tokens.behind = {end};
  put_text(folder + "/tokenizer.json", word_tokenizer(tokens));
  return tokens;
}

}  // namespace mh::test
