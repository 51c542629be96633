// A config.json read or written by one list of keys, so that a family states each key once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/block_options.h"

namespace mh {

// Each call names a key and the place of its value. Reading puts the file's value there, or where the file has no such
// key (or null) leaves the place as it is: a family sets defaults first. Writing notes the place's value under the key.
class ConfigFields {
 public:
  // Throws: io where the text is no JSON object; `name` stands in the sentences.
  static ConfigFields reading(std::string_view json, const std::string& name);
  static ConfigFields writing();
  ConfigFields(ConfigFields&&) noexcept;
  ~ConfigFields();

  bool is_reading() const;
  // Whether the file has the key with another value than null. False while writing.
  bool has(std::string_view key) const;
  bool is_text(std::string_view key) const;
  bool is_list(std::string_view key) const;

  // Sizes are whole numbers from 1 (count: from 0) to 2^31 - 1. Throws: io, naming file and key, for another value.
  void size(std::string_view key, int64_t& place);
  void count(std::string_view key, int64_t& place);
  void layers(std::string_view key, int64_t& place);      // from 1 to 4096
  void any_number(std::string_view key, int64_t& place);  // whole, of either sign
  void number(std::string_view key, float& place);
  void flag(std::string_view key, bool& place);
  void text(std::string_view key, std::string& place);
  void id(std::string_view key, int32_t& place);                // null: -1
  void ids(std::string_view key, std::vector<int32_t>& place);  // a number or a list
  void texts(std::string_view key, std::vector<std::string>& place);
  // A list of whole numbers, such as sizes by layer.
  void numbers(std::string_view key, std::vector<int64_t>& place);
  // Hugging Face's names of activations ("gelu_new" is Middle::gelu_tanh).
  void activation(std::string_view key, Middle& place);
  void activation(std::string_view key, Activation& place);
  // {"0": "LABEL_0", …} as a list, and label2id beside it where written.
  void labels(std::vector<std::string>& place);

  // The object under a key: read, or begun; keys that are there already are added to. Where the file has none, an empty
  // one, in which no key is found.
  ConfigFields inside(std::string_view key);
  // Refuses values that a family does not support. Throws: unsupported, naming file, key and what is expected.
  void require(std::string_view key, std::initializer_list<std::string_view> values);  // texts; a missing key passes
  void require(std::string_view key, bool value);
  [[noreturn]] void refuse(std::string_view key, const std::string& expected) const;

  // What was written, laid out as Hugging Face does.
  std::string written() const;
  // `base`, a JSON object, with those keys put over its own whose values differ from what was written in `before`.
  std::string written_over(std::string_view base, const ConfigFields& before) const;

 private:
  struct Document;
  explicit ConfigFields(std::shared_ptr<Document> document);
  std::shared_ptr<Document> document_;
};

}  // namespace mh
