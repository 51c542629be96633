// The way of a text through the steps of a tokenizer.json.
#include "multihead/text/pipeline/pipeline.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/unicode/code_set.h"
#include "multihead/text/utf8.h"

namespace mh::detail {
namespace {

// How many tokens of each text stay where `room` tokens have place: the longer text is cut first.
std::pair<size_t, size_t> longest_first(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const size_t shorter = std::min(first, second);
  size_t few = shorter, many = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (few + many > room) {
    few = room / 2;
    many = few + room % 2;
  }
  return first > second ? std::pair(many, few) : std::pair(few, many);
}

}  // namespace

void Pipeline::encode(std::string_view text, bool find_special, std::vector<int32_t>& out) const {
  Pieces pieces, cut;
  raw.cut({.text = utf8_error(text) ? repaired_utf8(text) : std::string(text), .at_start = true}, find_special, pieces);
  for (Piece& piece : pieces) {
    if (piece.token >= 0) {
      cut.push_back(std::move(piece));
      continue;
    }
    for (const NormaliseStep& step : normalise) step(piece);
    normalised.cut(piece, find_special, cut);
  }
  for (const SplitStep& step : split) step(cut);
  for (const Piece& piece : cut) {
    if (piece.token >= 0) {
      out.push_back(piece.token);
    } else {
      model->encode(piece.text, out);
    }
  }
}

std::string Pipeline::decode(const int32_t* ids, size_t count) const {
  std::vector<std::string> found;
  for (size_t i = 0; i < count; ++i)
    if (!special[static_cast<size_t>(ids[i])]) found.push_back(tokens[static_cast<size_t>(ids[i])]);
  for (const DecodeStep& step : decoders) step(found);
  return fmt::format("{}", fmt::join(found, decodes ? "" : " "));
}

Encoded assemble(const std::vector<TemplatePart>& parts, std::vector<int32_t> first, std::vector<int32_t> second,
                 const EncodeOptions& options) {
  if (options.max_length > 0) {
    const int64_t room = options.max_length - (options.add_special ? count_special(parts) : 0);
    check(room >= 0, "encode_input: max_length is {}, less than the {} special tokens alone", options.max_length,
          count_special(parts));
    const auto [keep, keep_second] = longest_first(first.size(), second.size(), static_cast<size_t>(room));
    first.resize(keep);
    second.resize(keep_second);
  }
  Encoded out;
  for (const TemplatePart& part : parts) {
    const bool is_special = part.kind == TemplatePart::Kind::special;
    if (is_special && !options.add_special) continue;
    const std::vector<int32_t>& ids = is_special ? part.ids : part.kind == TemplatePart::Kind::first ? first : second;
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.resize(out.ids.size(), part.type);
  }
  return out;
}

}  // namespace mh::detail
