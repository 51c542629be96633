// SentencePiece models as Unigram or BPE, family by family.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/legacy/json_parts.h"
#include "multihead/text/pipeline/read/json_fields.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

using PieceKind = ScoredPiece::Kind;
constexpr double kForeignScore =
    -1e6;  // of tokens that are no pieces of the source: taken only where nothing else fits

constexpr std::string_view kFamilies[] = {"", "T5", "XLMRoberta", "Albert", "Pegasus", "DebertaV2", "Llama"};

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
OrderedJson merges_of(const PieceModel& model) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < model.pieces.size(); ++i) ids.emplace(model.pieces[i].text, i);
  struct Found {
    std::string_view left, right;
    float score;
  };
  std::vector<Found> found;
  for (const ScoredPiece& piece : model.pieces) {
    const std::string_view text = piece.text;
    for (size_t at = text.size(); at-- > 1;)
      if (!U8_IS_TRAIL(text[at]) && ids.contains(text.substr(0, at)) && ids.contains(text.substr(at)))
        found.push_back({text.substr(0, at), text.substr(at), piece.score});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
  OrderedJson out = OrderedJson::array();
  for (const Found& one : found) out.push_back({one.left, one.right});
  return out;
}

OrderedJson bpe_of(const PieceModel& model) {
  std::vector<std::string> tokens;
  for (const ScoredPiece& piece : model.pieces) tokens.push_back(piece.text);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", model.pieces[model.unknown()].text},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", model.byte_fallback},
          {"ignore_merges", false},
          {"vocab", json_vocabulary(tokens)},
          {"merges", merges_of(model)}};
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

PieceList list_of(const PieceModel& model, std::string_view family) {
  PieceList out;
  if (family == "XLMRoberta") {
    check(model.pieces.size() > 3, "XLMRobertaTokenizer: the model has {} pieces; expected more than 3",
          model.pieces.size());
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) out.add_special(token);
    out.unknown = 3;
    out.add_pieces(model, 3);
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

TemplateText template_of(std::string_view family) {
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

OrderedJson byte_decoder() {
  const OrderedJson strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return json_sequence("decoders", {json_replace({{"String", "\xe2\x96\x81"}}, " "), json_typed("ByteFallback"),
                                    json_typed("Fuse"), strip});
}

}  // namespace

std::string piece_json(const PieceModel& model, std::string_view tokenizer_class, const std::string& where) {
  const std::string_view family = family_of(tokenizer_class);
  if (std::find(std::begin(kFamilies), std::end(kFamilies), family) == std::end(kFamilies))
    fail(ErrorKind::unsupported,
         "{}: {} is not supported; expected T5Tokenizer, XLMRobertaTokenizer, AlbertTokenizer, "
         "PegasusTokenizer, DebertaV2Tokenizer or LlamaTokenizer",
         where, in_quotes(tokenizer_class));
  const PieceList list = list_of(model, family);
  TokenizerParts parts{.specials = list.specials};
  const TemplateText around = template_of(family);
  if (!around.single.empty()) {
    parts.post = json_template(around, parts.specials);
    check(!parts.post["special_tokens"].empty(), "{}: the model lacks the special tokens of {}", where,
          tokenizer_class);
  }
  if (model.is_bpe) {
    check(family.empty() || family == "Llama", "{}: a BPE model for {} is not known; expected LlamaTokenizer", where,
          tokenizer_class);
    parts.model = bpe_of(model);
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

std::string paired_json(const PieceModel& source, std::string_view vocabulary, const std::string& where) {
  const std::vector<std::string> tokens = read_vocabulary_json(vocabulary, where);
  std::unordered_map<std::string_view, float> scores;
  for (const ScoredPiece& piece : source.pieces)
    if (piece.kind == PieceKind::normal) scores.emplace(piece.text, piece.score);
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
  TokenizerParts parts{.specials = list.specials};
  parts.post = json_template({"A </s>", "A B </s>"}, parts.specials);
  check(!parts.post["special_tokens"].empty(), "{}: the vocabulary has no token </s>", where);
  parts.normaliser = normaliser_of(source);
  parts.splitter = json_metaspace("always", false);
  parts.decoder = json_metaspace("always", false);
  parts.model = unigram_of(list, false);
  return dump_tokenizer(std::move(parts));
}

}  // namespace mh::detail
