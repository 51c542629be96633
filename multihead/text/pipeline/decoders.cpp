// The reading of decoders, and the decoders themselves.
#include "multihead/text/pipeline/decoders.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/metaspace.h"
#include "multihead/text/pipeline/models/byte_alphabet.h"
#include "multihead/text/pipeline/read/read_parts.h"
#include "multihead/text/pipeline/searched.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/utf8.h"

namespace mh::detail {
namespace {

using Tokens = std::vector<std::string>;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// English as it was before it was cut apart, token by token.
std::string tidy(std::string token) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kTidied{{{" .", "."},
                                                                                          {" ?", "?"},
                                                                                          {" !", "!"},
                                                                                          {" ,", ","},
                                                                                          {" ' ", "'"},
                                                                                          {" n't", "n't"},
                                                                                          {" 'm", "'m"},
                                                                                          {" do not", " don't"},
                                                                                          {" 's", "'s"},
                                                                                          {" 've", "'ve"},
                                                                                          {" 're", "'re"}}};
  for (const auto& [from, to] : kTidied) token = replace_all(token, from, to);
  return token;
}

struct WordPieceDecode {
  std::string prefix;
  bool cleanup;

  void operator()(Tokens& tokens) const {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
      if (cleanup) token = tidy(std::move(token));
    }
  }
};

void fuse(Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens = {std::move(all)};
}

void decode_byte_level(Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += read_bytes(token).value_or(token);
  tokens = {repaired_utf8(bytes)};
}

// The byte that "<0x2A>" stands for, or -1.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char digit : token.substr(3, 2)) {
    const bool upper = digit >= 'A' && digit <= 'F', lower = digit >= 'a' && digit <= 'f';
    if (!upper && !lower && (digit < '0' || digit > '9')) return -1;
    value = value * 16 + (upper ? digit - 'A' + 10 : lower ? digit - 'a' + 10 : digit - '0');
  }
  return value;
}

// A run of byte tokens is their text; one that is not UTF-8 is a U+FFFD for each byte.
void decode_byte_fallback(Tokens& tokens) {
  Tokens out;
  std::string run;
  const auto end_run = [&] {
    if (run.empty()) return;
    if (!utf8_error(run)) {
      out.push_back(run);
    } else {
      out.insert(out.end(), run.size(), std::string(kReplacement));
    }
    run.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      run.push_back(static_cast<char>(byte));
    } else {
      end_run();
      out.push_back(std::move(token));
    }
  }
  end_run();
  tokens = std::move(out);
}

struct StripDecode {
  std::string content;
  int64_t start, stop;

  void operator()(Tokens& tokens) const {
    for (std::string& token : tokens) {
      for (int64_t i = 0; i < start && token.starts_with(content); ++i) token.erase(0, content.size());
      for (int64_t i = 0; i < stop && token.ends_with(content); ++i) token.resize(token.size() - content.size());
    }
  }
};

struct ReplaceDecode {
  Searched what;
  std::string with;

  void operator()(Tokens& tokens) const {
    for (std::string& token : tokens) token = what.replaced(token, with);
  }
};

struct SuffixDecode {
  std::string suffix;

  void operator()(Tokens& tokens) const {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  }
};

// The output of speech models, a token for each frame: repeated ones count once.
struct CtcDecode {
  std::string pad, delimiter;
  bool cleanup;

  void operator()(Tokens& tokens) const {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      token = replace_all(token, pad, "");
      if (cleanup) token = replace_all(tidy(std::move(token)), delimiter, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  }
};

CtcDecode read_ctc(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where, {"type", "pad_token", "word_delimiter_token", "cleanup"});
  CtcDecode out{std::string(fields.string("pad_token")), std::string(fields.string("word_delimiter_token")),
                fields.flag("cleanup", true)};
  check(!out.pad.empty() && !out.delimiter.empty(), "{}: a token is empty; expected at least one character", where);
  return out;
}

StripDecode read_strip(const JsonElement& element, const std::string& where) {
  const JsonFields fields(element, where, {"type", "content", "start", "stop"});
  return {read_character(fields, "content"), fields.integer("start"), fields.integer("stop")};
}

SuffixDecode read_suffix(const JsonElement& element, const std::string& where) {
  const std::string_view suffix = JsonFields(element, where, {"type", "suffix"}).string("suffix");
  check(!suffix.empty(), "{}: 'suffix' is empty; expected at least one character", where);
  return {std::string(suffix)};
}

}  // namespace

void read_decoders(const JsonElement& element, const std::string& where, std::vector<DecodeStep>& out) {
  const std::string_view type = json_type(element, where);
  if (type == "Sequence") {
    for (const JsonElement step : JsonFields(element, where, {"type", "decoders"}).array("decoders"))
      read_decoders(step, where, out);
  } else if (type == "WordPiece") {
    const JsonFields fields(element, where, {"type", "prefix", "cleanup"});
    out.push_back(WordPieceDecode{std::string(fields.string("prefix")), fields.flag("cleanup", true)});
  } else if (type == "Metaspace") {
    out.push_back(MetaspaceDecode{read_metaspace(element, where)});
  } else if (type == "ByteLevel") {
    JsonFields(element, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    out.push_back(decode_byte_level);
  } else if (type == "Fuse" || type == "ByteFallback") {
    JsonFields(element, where, {"type"});
    out.push_back(type == "Fuse" ? fuse : decode_byte_fallback);
  } else if (type == "Strip") {
    out.push_back(read_strip(element, where));
  } else if (type == "Replace") {
    const JsonFields fields(element, where, {"type", "pattern", "content"});
    out.push_back(ReplaceDecode{Searched(fields), std::string(fields.string("content"))});
  } else if (type == "CTC") {
    out.push_back(read_ctc(element, where));
  } else if (type == "BPEDecoder") {
    out.push_back(read_suffix(element, where));
  } else {
    refuse_part(where, type,
                "WordPiece, Metaspace, ByteLevel, Fuse, ByteFallback, Strip, Replace, BPEDecoder, CTC or Sequence");
  }
}

}  // namespace mh::detail
