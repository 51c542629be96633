// SentencePiece models as Unigram or BPE, family by family.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "multihead/base/error.h"
#include "multihead/text/legacy/json_parts.h"
#include "multihead/text/legacy/language_lists.h"
#include "multihead/text/pipeline/read/json_fields.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

using PieceKind = ScoredPiece::Kind;
constexpr double kForeignScore =
    -1e6;  // of tokens that are no pieces of the source: taken only where nothing else fits

constexpr std::string_view kFamilies[] = {"",          "T5",    "XLMRoberta", "Albert",  "Pegasus",
                                          "DebertaV2", "Llama", "MBart",      "MBart50", "Nllb"};

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kSigns = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) out.push_back(i <= count ? kSigns[bits >> (18 - 6 * i) & 63] : '=');
  }
  return out;
}

// Tokens by id with their scores.
struct PieceList {
  std::vector<std::pair<std::string, double>> tokens{};
  size_t unknown = 0;
  SpecialTokens specials{};

  void add(std::string_view token, double score = 0) { tokens.emplace_back(token, score); }
  void add_special(std::string_view token) {
    specials.emplace_back(token, static_cast<int32_t>(tokens.size()));
    add(token);
  }
  void add_pieces(const PieceModel& model, size_t from) {
    for (size_t i = from; i < model.pieces.size(); ++i) {
      const ScoredPiece& piece = model.pieces[i];
      if (piece.kind == PieceKind::unknown || piece.kind == PieceKind::control)
        specials.emplace_back(piece.text, static_cast<int32_t>(tokens.size()));
      add(piece.text, piece.score);
    }
  }
};

OrderedJson unigram_of(const PieceList& list, bool byte_fallback) {
  OrderedJson vocabulary = OrderedJson::array();
  for (const auto& [token, score] : list.tokens) vocabulary.push_back({token, score});
  return {{"type", "Unigram"}, {"unk_id", list.unknown}, {"vocab", vocabulary}, {"byte_fallback", byte_fallback}};
}

// All ways to put a piece together from two others, the piece with the higher score first, of one the longer left part.
// Pieces that are no tokens take no part.
OrderedJson merges_of(const PieceModel& model, const std::vector<std::string>& tokens) {
  const std::unordered_set<std::string_view> ids(tokens.begin(), tokens.end());
  struct Found {
    std::string_view left, right;
    float score;
  };
  std::vector<Found> found;
  for (const ScoredPiece& piece : model.pieces) {
    const std::string_view text = piece.text;
    if (!ids.contains(text)) continue;
    for (size_t at = text.size(); at-- > 1;)
      if (!U8_IS_TRAIL(text[at]) && ids.contains(text.substr(0, at)) && ids.contains(text.substr(at)))
        found.push_back({text.substr(0, at), text.substr(at), piece.score});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
  OrderedJson out = OrderedJson::array();
  for (const Found& one : found) out.push_back({one.left, one.right});
  return out;
}

OrderedJson bpe_of(const PieceModel& model, const PieceList& list) {
  std::vector<std::string> tokens;
  for (const auto& [token, score] : list.tokens) tokens.push_back(token);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", tokens[list.unknown]},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", model.byte_fallback},
          {"ignore_merges", false},
          {"vocab", json_vocabulary(tokens)},
          {"merges", merges_of(model, tokens)}};
}

OrderedJson spaces_to_one() { return json_replace({{"Regex", " {2,}"}}, " "); }

OrderedJson normaliser_of(const PieceModel& model) {
  OrderedJson steps = OrderedJson::array();
  if (!model.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}});
  if (model.remove_extra_spaces) {
    steps.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
    steps.push_back(spaces_to_one());
  }
  return steps.empty() ? OrderedJson(nullptr) : json_sequence("normalizers", std::move(steps));
}

OrderedJson albert_normaliser(const PieceModel& model) {
  OrderedJson steps =
      OrderedJson::array({json_replace({{"String", "``"}}, "\""), json_replace({{"String", "''"}}, "\""),
                          json_typed("NFKD"), json_typed("StripAccents"), json_typed("Lowercase")});
  if (!model.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}});
  steps.push_back(spaces_to_one());
  return json_sequence("normalizers", std::move(steps));
}

bool is_multilingual(std::string_view family) { return !listed_languages(family).empty(); }

PieceList list_of(const PieceModel& model, std::string_view family) {
  PieceList out;
  if (family == "XLMRoberta" || is_multilingual(family)) {
    check(model.pieces.size() > 3, "{}Tokenizer: the model has {} pieces; expected more than 3", family,
          model.pieces.size());
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) out.add_special(token);
    out.unknown = 3;
    out.add_pieces(model, 3);
    for (const std::string& language : listed_languages(family)) out.add_special(language);
    out.add_special("<mask>");
  } else if (family == "Pegasus") {
    for (const char* token : {"<pad>", "</s>", "<mask_1>", "<mask_2>"}) out.add_special(token);
    for (int i = 2; i < 103; ++i) out.add_special(fmt::format("<unk_{}>", i));
    out.unknown = model.unknown() + 103;
    out.add_pieces(model, 2);
  } else {
    out.unknown = model.unknown();
    out.add_pieces(model, 0);
    for (int i = 99; family == "T5" && i >= 0; --i) out.add_special(fmt::format("<extra_id_{}>", i));
    if (family == "DebertaV2") out.add_special("[MASK]");
  }
  return out;
}

// `language` around a text, and its end.
TemplateText framed(const std::string& language, bool behind) {
  if (behind) return {"A </s> " + language, "A B </s> " + language};
  return {language + " A </s>", language + " A B </s>"};
}

TemplateText template_of(std::string_view family, const PieceFolder& folder) {
  if (is_multilingual(family)) {
    const std::string own = family == "Nllb" ? "eng_Latn" : "en_XX";
    return framed(folder.source_language.empty() ? own : folder.source_language,
                  family == "MBart" || folder.legacy_frame);
  }
  if (family == "XLMRoberta") return {"<s> A </s>", "<s> A </s> </s> B </s>"};
  if (family == "T5") return {"A </s>", "A </s> B </s>"};
  if (family == "Pegasus") return {"A </s>", "A B </s>"};
  if (family == "Albert" || family == "DebertaV2") return {"[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1"};
  if (family == "Llama") return {"<s> A", "<s> A <s>:1 B:1"};
  return {};
}

// The class's name without "Tokenizer" and "TokenizerFast".
std::string_view family_of(std::string_view tokenizer_class) {
  return tokenizer_class.substr(0, tokenizer_class.find("Tokenizer"));
}

bool has_special(const SpecialTokens& specials, std::string_view token) {
  return std::any_of(specials.begin(), specials.end(), [&](const auto& each) { return each.first == token; });
}

// `language`: the source's, where the folder names one.
void check_language(const TokenizerParts& parts, std::string_view language, const std::string& where) {
  check(language.empty() || has_special(parts.specials, language),
        "{}: src_lang of tokenizer_config.json is {}; expected a language of its class", where, in_quotes(language));
}

// A text cut at its spaces, as BPE models of SentencePiece see it.
void put_words(TokenizerParts& parts, const PieceModel& model) {
  parts.normaliser = normaliser_of(model);
  parts.splitter = json_metaspace(model.dummy_prefix ? "always" : "never", true);
  parts.decoder = parts.splitter;
}

OrderedJson byte_decoder() {
  const OrderedJson strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return json_sequence("decoders", {json_replace({{"String", "\xe2\x96\x81"}}, " "), json_typed("ByteFallback"),
                                    json_typed("Fuse"), strip});
}

}  // namespace

std::string piece_json(const PieceModel& model, const PieceFolder& folder, const std::string& where) {
  const std::string& tokenizer_class = folder.tokenizer_class;
  const std::string_view family = family_of(tokenizer_class);
  if (std::find(std::begin(kFamilies), std::end(kFamilies), family) == std::end(kFamilies))
    fail(ErrorKind::unsupported,
         "{}: {} is not supported; expected T5Tokenizer, XLMRobertaTokenizer, AlbertTokenizer, "
         "PegasusTokenizer, DebertaV2Tokenizer, LlamaTokenizer, MBartTokenizer, MBart50Tokenizer or NllbTokenizer",
         where, in_quotes(tokenizer_class));
  const PieceList list = list_of(model, family);
  TokenizerParts parts{.specials = list.specials};
  const TemplateText around = template_of(family, folder);
  if (!around.single.empty()) {
    parts.post = json_template(around, parts.specials);
    check(!parts.post["special_tokens"].empty(), "{}: the model lacks the special tokens of {}", where,
          tokenizer_class);
    if (is_multilingual(family)) check_language(parts, folder.source_language, where);
  }
  if (model.is_bpe && is_multilingual(family)) {
    parts.model = bpe_of(model, list);
    put_words(parts, model);
    return dump_tokenizer(std::move(parts));
  }
  if (model.is_bpe) {
    check(family.empty() || family == "Llama",
          "{}: a BPE model for {} is not known; expected LlamaTokenizer or NllbTokenizer", where, tokenizer_class);
    parts.model = bpe_of(model, list);
    parts.normaliser = normaliser_of(model);
    parts.splitter = json_metaspace(model.dummy_prefix ? "first" : "never", false);
    parts.decoder = byte_decoder();
    return dump_tokenizer(std::move(parts));
  }
  parts.model = unigram_of(list, model.byte_fallback);
  parts.normaliser = family == "Albert" ? albert_normaliser(model) : normaliser_of(model);
  parts.splitter = json_metaspace(model.dummy_prefix ? "always" : "never", true);
  parts.decoder = json_metaspace(model.dummy_prefix ? "always" : "never", true);
  return dump_tokenizer(std::move(parts));
}

std::string paired_json(const PieceModel& source, std::string_view vocabulary, const PieceFolder& folder,
                        const std::string& where) {
  const std::vector<std::string> tokens = read_vocabulary_json(vocabulary, where);
  std::unordered_map<std::string_view, float> scores;
  for (const ScoredPiece& piece : source.pieces)
    if (piece.kind == PieceKind::normal) scores.emplace(piece.text, piece.score);
  const bool m2m = family_of(folder.tokenizer_class) == "M2M100";
  PieceList list{.unknown = tokens.size()};
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (token == "<unk>") list.unknown = i;
    const bool language =
        (token.starts_with(">>") && token.ends_with("<<")) || (token.starts_with("__") && token.ends_with("__"));
    if (token == "<s>" || token == "</s>" || token == "<unk>" || token == "<pad>" || language) {
      list.add_special(token);
      continue;
    }
    const auto found = scores.find(token);
    list.add(token, found != scores.end() ? double{found->second} : kForeignScore);
  }
  check(list.unknown < tokens.size(), "{}: the vocabulary has no token <unk>", where);
  const std::string first = "__" + (folder.source_language.empty() ? "en" : folder.source_language) + "__";
  if (m2m && !has_special(list.specials, first))
    for (const std::string& language : listed_languages(folder.language_codes == "wmt21" ? "wmt21" : "M2M100"))
      list.add_special("__" + language + "__");
  TokenizerParts parts{.specials = list.specials};
  parts.post = json_template(m2m ? framed(first, false) : TemplateText{"A </s>", "A B </s>"}, parts.specials);
  check(has_special(parts.specials, "</s>"), "{}: the vocabulary has no token </s>", where);
  if (m2m) check_language(parts, first, where);
  if (source.is_bpe) {
    parts.model = bpe_of(source, list);
    put_words(parts, source);
    return dump_tokenizer(std::move(parts));
  }
  parts.normaliser = normaliser_of(source);
  parts.splitter = json_metaspace("always", false);
  parts.decoder = json_metaspace("always", false);
  parts.model = unigram_of(list, false);
  return dump_tokenizer(std::move(parts));
}

}  // namespace mh::detail
