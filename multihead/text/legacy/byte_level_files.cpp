// vocab.txt, and vocab.json with merges.txt.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/legacy/json_parts.h"
#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {
namespace {

constexpr std::string_view kClipPattern =
    R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";

// Those of the names that are tokens.
SpecialTokens specials_among(const std::vector<std::string>& tokens, std::initializer_list<std::string_view> names) {
  SpecialTokens out;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (std::find(names.begin(), names.end(), tokens[i]) != names.end())
      out.emplace_back(tokens[i], static_cast<int32_t>(i));
  return out;
}

int32_t id_among(const SpecialTokens& specials, std::string_view name) {
  for (const auto& [token, id] : specials)
    if (token == name) return id;
  return -1;
}

OrderedJson read_merge_lines(std::string_view text, const std::string& where) {
  OrderedJson out = OrderedJson::array();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    check(space != line.npos && line.find(' ', space + 1) == line.npos && space > 0 && space + 1 < line.size(),
          "{}: the line {} is not a pair of tokens", where, in_quotes(line));
    out.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  return out;
}

OrderedJson roberta_post(const SpecialTokens& specials, std::string_view cls, std::string_view sep, bool trim) {
  return {{"type", "RobertaProcessing"},
          {"sep", {sep, id_among(specials, sep)}},
          {"cls", {cls, id_among(specials, cls)}},
          {"trim_offsets", trim},
          {"add_prefix_space", false}};
}

void make_clip(TokenizerParts& parts) {
  parts.normaliser = json_sequence(
      "normalizers", {json_typed("NFC"), json_replace({{"Regex", R"(\s+)"}}, " "), json_typed("Lowercase")});
  const OrderedJson split = {
      {"type", "Split"}, {"pattern", {{"Regex", kClipPattern}}}, {"behavior", "Removed"}, {"invert", true}};
  parts.splitter = json_sequence("pretokenizers", {split, json_byte_level(false)});
  parts.splitter["pretokenizers"][1]["use_regex"] = false;
  parts.post = roberta_post(parts.specials, "<|startoftext|>", "<|endoftext|>", false);
  parts.model["end_of_word_suffix"] = "</w>";
  parts.model["unk_token"] = "<|endoftext|>";
}

}  // namespace

std::string bert_json(const BertVocabulary& vocabulary, const std::string& where) {
  TokenizerParts parts{.specials = specials_among(vocabulary.tokens, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})};
  for (const char* name : {"[UNK]", "[CLS]", "[SEP]"})
    check(id_among(parts.specials, name) >= 0, "{}: the vocabulary has no token {}", where, name);
  parts.normaliser = {{"type", "BertNormalizer"},
                      {"clean_text", true},
                      {"handle_chinese_chars", vocabulary.chinese},
                      {"strip_accents", nullptr},
                      {"lowercase", vocabulary.lowercase}};
  if (vocabulary.strip_accents >= 0) parts.normaliser["strip_accents"] = vocabulary.strip_accents == 1;
  parts.splitter = json_typed("BertPreTokenizer");
  parts.post = json_template({"[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1"}, parts.specials);
  parts.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  parts.model = {{"type", "WordPiece"},
                 {"unk_token", "[UNK]"},
                 {"continuing_subword_prefix", "##"},
                 {"max_input_chars_per_word", 100},
                 {"vocab", json_vocabulary(vocabulary.tokens)}};
  return dump_tokenizer(std::move(parts));
}

std::string byte_level_json(std::string_view vocabulary, std::string_view merges, const std::string& where) {
  const std::vector<std::string> tokens = read_vocabulary_json(vocabulary, where);
  TokenizerParts parts{.specials = specials_among(
                           tokens, {"<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>", "<|startoftext|>"})};
  parts.model = {{"type", "BPE"},
                 {"dropout", nullptr},
                 {"unk_token", nullptr},
                 {"continuing_subword_prefix", nullptr},
                 {"end_of_word_suffix", nullptr},
                 {"fuse_unk", false},
                 {"byte_fallback", false},
                 {"ignore_merges", false},
                 {"vocab", json_vocabulary(tokens)},
                 {"merges", read_merge_lines(merges, where)}};
  parts.decoder = json_byte_level(true);
  parts.splitter = json_byte_level(false);
  if (id_among(parts.specials, "<|startoftext|>") >= 0 && id_among(parts.specials, "<|endoftext|>") >= 0) {
    make_clip(parts);
  } else if (id_among(parts.specials, "<s>") >= 0 && id_among(parts.specials, "</s>") >= 0) {
    parts.post = roberta_post(parts.specials, "<s>", "</s>", true);
  } else {
    parts.post = json_byte_level(true);
    parts.post["trim_offsets"] = false;
  }
  return dump_tokenizer(std::move(parts));
}

}  // namespace mh::detail
