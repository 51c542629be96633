// Unigram: of all ways to cut a word into pieces the one with the highest sum of scores.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/models/trie.h"
#include "multihead/text/pipeline/models/word_model.h"
#include "multihead/text/pipeline/read/read_parts.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst score of all pieces
constexpr size_t kNowhere = ~size_t{0};

class Unigram : public WordModel {
 public:
  Unigram(std::vector<double> scores, const TokenIds& ids, std::optional<int32_t> unknown, bool byte_fallback)
      : scores_(std::move(scores)), ids_(ids), unknown_(unknown.value_or(-1)) {
    trie_ = Trie({ids_.begin(), ids_.end()});
    unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
    for (size_t byte = 0; byte < bytes_.size(); ++byte) {
      const auto found = ids_.find(fmt::format("<0x{:02X}>", byte));
      bytes_[byte] = byte_fallback && found != ids_.end() ? found->second : -1;
    }
  }

  void encode(std::string_view word, WordTokens& out) const override {
    const std::vector<Step> best = best_steps(word);
    WordTokens parts;    // from the last to the first
    bool joins = false;  // the part found last is unknown: neighbours that are, too, join it
    for (size_t end = word.size(); end > 0; end = best[end].begin) {
      const bool unknown = best[end].id == unknown_;
      if (unknown && joins) {
        parts.back().begin = static_cast<uint32_t>(best[end].begin);
      } else {
        parts.push_back({best[end].id, static_cast<uint32_t>(best[end].begin), static_cast<uint32_t>(end)});
      }
      joins = unknown;
    }
    for (auto at = parts.rbegin(); at != parts.rend(); ++at) {
      if (at->id != unknown_) {
        out.push_back(*at);
      } else {
        append_unknown(word.substr(at->begin, at->end - at->begin), *at, out);
      }
    }
  }

 private:
  struct Step {
    size_t begin = kNowhere;  // of the last piece on the best way here
    double score = 0;         // of that way
    int32_t id = -1;
  };

  // By the end of each piece. Of equal ways the one found first stays: the longer last piece.
  std::vector<Step> best_steps(std::string_view word) const {
    std::vector<Step> best(word.size() + 1);
    for (size_t at = 0; at < word.size();) {
      const double here = best[at].score;
      size_t after = at;
      next_character(word, after);
      bool single = false;
      const auto offer = [&](size_t end, double score, int32_t id) {
        if (best[end].begin == kNowhere || score > best[end].score) best[end] = {at, score, id};
      };
      trie_.each_prefix(word, at, [&](size_t end, int32_t id) {
        offer(end, here + scores_[static_cast<size_t>(id)], id);
        single |= end == after;
      });
      if (!single) {
        check(unknown_ >= 0, "encode: a character is unknown, and the file has no 'unk_id'");
        offer(after, here + unknown_score_, unknown_);
      }
      at = after;
    }
    return best;
  }

  // Characters that were unknown one by one may be a token together.
  void append_unknown(std::string_view part, WordToken at, WordTokens& out) const {
    if (const auto found = ids_.find(std::string(part)); found != ids_.end()) {
      out.push_back({found->second, at.begin, at.end});
      return;
    }
    const auto byte_token = [&](char c) { return bytes_[static_cast<uint8_t>(c)]; };
    if (std::all_of(part.begin(), part.end(), [&](char c) { return byte_token(c) >= 0; })) {
      for (const char c : part) out.push_back({byte_token(c), at.begin, at.end});
    } else {
      out.push_back(at);
    }
  }

  std::vector<double> scores_;
  TokenIds ids_;
  int32_t unknown_;
  double unknown_score_ = 0;
  std::array<int32_t, 256> bytes_{};
  Trie trie_;
};

double read_piece(const JsonElement& element, const std::string& where, TokenIds& ids) {
  simdjson::dom::array both;
  std::string_view token;
  double score = 0;
  const bool fits = element.get(both) == simdjson::SUCCESS && both.size() == 2 &&
                    both.at(0).get(token) == simdjson::SUCCESS && both.at(1).get(score) == simdjson::SUCCESS;
  check(fits, "{}: number {} is not a piece with a score; expected [\"a\", -1.5]", where, ids.size());
  check(!token.empty(), "{}: number {} is empty; expected pieces of at least one character", where, ids.size());
  check(ids.emplace(token, static_cast<int32_t>(ids.size())).second, "{}: the token {} stands there twice", where,
        in_quotes(token));
  return score;
}

}  // namespace

std::unique_ptr<WordModel> read_unigram(const JsonElement& element, const std::string& where, TokenIds& ids) {
  const JsonFields model(element, where, {"type", "unk_id", "vocab", "byte_fallback"});
  std::vector<double> scores;
  for (const JsonElement piece : model.array("vocab")) scores.push_back(read_piece(piece, where + ": vocab", ids));
  check(!scores.empty(), "{}: 'vocab' is empty; expected at least one piece", where);
  std::optional<int32_t> unknown;
  if (model.find("unk_id")) {
    const int64_t id = model.integer("unk_id");
    check(id >= 0 && id < static_cast<int64_t>(scores.size()), "{}: 'unk_id' is {}; expected 0 to {}", where, id,
          scores.size() - 1);
    unknown = static_cast<int32_t>(id);
  }
  return std::make_unique<Unigram>(std::move(scores), ids, unknown, model.flag("byte_fallback", false));
}

}  // namespace mh::detail
