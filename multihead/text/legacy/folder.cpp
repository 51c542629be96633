// Which files a folder holds, and what they are read as.
#include "multihead/text/legacy/folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"
#include "multihead/text/legacy/as_json.h"
#include "multihead/text/unicode/utf8.h"

namespace mh::detail {
namespace {

using nlohmann::json;

constexpr size_t kLargestFile = size_t{1} << 30;
constexpr const char* kPieceModels[] = {"sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model",
                                        "source.spm"};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// tokenizer_config.json; an empty object where there is none.
json config_of(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  if (!is_file(path)) return json::object();
  json out = json::parse(read_tokenizer_file(path), nullptr, false);
  check(out.is_object(), "tokenizer {}: this is no JSON object", printable_path(path));
  return out;
}

bool flag_of(const json& config, const char* name, bool missing) {
  const auto found = config.find(name);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : missing;
}

std::string text_of(const json& config, const char* name) {
  const auto found = config.find(name);
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string read_bert_folder(const std::string& folder) {
  const std::string path = folder + "/vocab.txt";
  const std::string where = fmt::format("tokenizer {}", printable_path(path)), text = read_tokenizer_file(path);
  check(!utf8_error(text), "{}: this is not UTF-8", where);
  const json config = config_of(folder);
  BertVocabulary out{.lowercase = flag_of(config, "do_lower_case", true),
                     .chinese = flag_of(config, "tokenize_chinese_chars", true)};
  if (config.contains("strip_accents") && config["strip_accents"].is_boolean())
    out.strip_accents = config["strip_accents"].get<bool>() ? 1 : 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.pop_back();
    check(!line.empty(), "{}: line {} is empty; expected a token on each", where, out.tokens.size() + 1);
    out.tokens.push_back(std::move(line));
    at = end + 1;
  }
  return bert_json(out, where);
}

std::string read_model_folder(const std::string& folder, const std::string& model) {
  const std::string where = fmt::format("tokenizer {}", printable_path(model));
  const PieceModel pieces = read_piece_model(read_tokenizer_file(model), where);
  const json config = config_of(folder);
  PieceFolder said{.tokenizer_class = text_of(config, "tokenizer_class"),
                   .source_language = text_of(config, "src_lang"),
                   .language_codes = text_of(config, "language_codes"),
                   .legacy_frame = flag_of(config, "legacy_behaviour", false)};
  if (is_file(folder + "/vocab.json")) {
    if (said.tokenizer_class.empty() && !model.ends_with("source.spm")) said.tokenizer_class = "M2M100Tokenizer";
    return paired_json(pieces, read_tokenizer_file(folder + "/vocab.json"), said, where);
  }
  if (said.tokenizer_class.empty() && model.ends_with("sentencepiece.bpe.model"))
    said.tokenizer_class = "XLMRobertaTokenizer";
  return piece_json(pieces, said, where);
}

}  // namespace

std::string read_tokenizer_file(const std::string& path) {
  const FileBytes file = map_file(path);
  check(file.bytes.size() <= kLargestFile, "tokenizer {} is larger than 1 GiB; expected a tokenizer.json",
        printable_path(path));
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

std::string piece_file_as_json(const std::string& path) {
  const std::string where = fmt::format("tokenizer {}", printable_path(path));
  return piece_json(read_piece_model(read_tokenizer_file(path), where), {}, where);
}

std::string folder_as_json(const std::string& path) {
  if (is_file(path + "/tokenizer.json")) return read_tokenizer_file(path + "/tokenizer.json");
  if (is_file(path + "/vocab.txt")) return read_bert_folder(path);
  if (is_file(path + "/vocab.json") && is_file(path + "/merges.txt"))
    return byte_level_json(read_tokenizer_file(path + "/vocab.json"), read_tokenizer_file(path + "/merges.txt"),
                           fmt::format("tokenizer {}", printable_path(path)));
  for (const char* name : kPieceModels)
    if (is_file(path + "/" + name)) return read_model_folder(path, path + "/" + name);
  fail(ErrorKind::io,
       "tokenizer {}: the folder has no tokenizer; expected tokenizer.json, vocab.txt, vocab.json and merges.txt, or a "
       "SentencePiece model",
       printable_path(path));
}

}  // namespace mh::detail
