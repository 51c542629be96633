// The way of a text through the steps of a tokenizer.json.
#include "multihead/text/pipeline/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "multihead/text/unicode/code_set.h"
#include "multihead/text/unicode/utf8.h"

namespace mh::detail {
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

}  // namespace mh::detail
