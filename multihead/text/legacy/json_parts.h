// Pieces of a tokenizer.json that more than one older format becomes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "multihead/text/legacy/as_json.h"

namespace mh::detail {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_typed(std::string_view type);
OrderedJson json_sequence(std::string_view list, OrderedJson steps);
OrderedJson json_metaspace(std::string_view scheme, bool split);
OrderedJson json_replace(OrderedJson pattern, std::string_view content);
OrderedJson json_byte_level(bool add_prefix_space);
OrderedJson json_added(const SpecialTokens& specials);
OrderedJson json_template(const TemplateText& text, const SpecialTokens& specials);

// An object of tokens and ids; by emplace_back: a look-up for each key would make it quadratic.
OrderedJson json_vocabulary(const std::vector<std::string>& tokens);

// The whole file.
struct TokenizerParts {
  SpecialTokens specials{};
  OrderedJson normaliser = nullptr, splitter = nullptr, post = nullptr, decoder = nullptr, model = nullptr;
};

std::string dump_tokenizer(TokenizerParts parts);

// The tokens of vocab.json by id. Throws: invalid_argument, beginning with `where`, for what is no vocabulary.
std::vector<std::string> read_vocabulary_json(std::string_view json, const std::string& where);

}  // namespace mh::detail
