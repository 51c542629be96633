// The wire format of protocol buffers, read by hand, and the four messages of a model.
#include "multihead/text/legacy/piece_model.h"

#include <cmath>
#include <cstring>
#include <unordered_set>

#include "multihead/base/error.h"
#include "multihead/text/pipeline/read/json_fields.h"
#include "multihead/text/unicode/utf8.h"

namespace mh::detail {
namespace {

// One field of a message: its number, and its value as a number or as bytes.
struct WireField {
  uint64_t number = 0, value = 0;
  std::string_view bytes{};
};

class WireReader {
 public:
  WireReader(std::string_view message, const std::string& where) : left_(message), where_(where) {}

  // False at the end.
  bool next(WireField& out) {
    if (left_.empty()) return false;
    const uint64_t key = varint();
    out = {.number = key >> 3};
    switch (key & 7) {
      case 0: out.value = varint(); return true;
      case 1: out.bytes = take(8); return true;
      case 2: out.bytes = take(varint()); return true;
      case 5: {
        out.bytes = take(4);
        for (size_t i = 0; i < 4; ++i) out.value |= uint64_t{static_cast<uint8_t>(out.bytes[i])} << 8 * i;
        return true;
      }
      default: check(false, "{}: this is no SentencePiece model: a field has the wire type {}", where_, key & 7);
    }
    return false;
  }

 private:
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      out |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return out;
    }
    check(false, "{}: this is no SentencePiece model: a number has more than ten bytes", where_);
    return 0;
  }

  std::string_view take(uint64_t size) {
    check(size <= left_.size(), "{}: this is no SentencePiece model: a field of {} bytes in {}", where_, size,
          left_.size());
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }

  std::string_view left_;
  const std::string& where_;
};

ScoredPiece read_scored_piece(std::string_view message, const std::string& where) {
  ScoredPiece out;
  WireReader reader(message, where);
  for (WireField field; reader.next(field);) {
    if (field.number == 1) out.text = field.bytes;
    if (field.number == 2) {
      const auto bits = static_cast<uint32_t>(field.value);
      std::memcpy(&out.score, &bits, sizeof(bits));
    }
    if (field.number == 3) {
      check(field.value >= 1 && field.value <= 6, "{}: a piece has the type {}; expected 1 to 6", where, field.value);
      out.kind = static_cast<ScoredPiece::Kind>(field.value);
    }
  }
  check(!out.text.empty() && !utf8_error(out.text), "{}: the piece {} is empty or not UTF-8", where,
        in_quotes(out.text));
  check(std::isfinite(out.score), "{}: the score of the piece {} is not finite", where, in_quotes(out.text));
  return out;
}

void read_training(std::string_view message, const std::string& where, PieceModel& out) {
  WireReader reader(message, where);
  for (WireField field; reader.next(field);) {
    if (field.number == 3) {
      check(field.value == 1 || field.value == 2, "{}: the model is of type {}; expected 1 (unigram) or 2 (BPE)", where,
            field.value);
      out.is_bpe = field.value == 2;
    }
    if (field.number == 35) out.byte_fallback = field.value != 0;
  }
}

void read_normalising(std::string_view message, const std::string& where, PieceModel& out) {
  WireReader reader(message, where);
  for (WireField field; reader.next(field);) {
    if (field.number == 2) out.charsmap = field.bytes;
    if (field.number == 3) out.dummy_prefix = field.value != 0;
    if (field.number == 4) out.remove_extra_spaces = field.value != 0;
  }
}

}  // namespace

size_t PieceModel::unknown() const {
  for (size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].kind == ScoredPiece::Kind::unknown) return i;
  return 0;
}

PieceModel read_piece_model(std::string_view bytes, const std::string& where) {
  PieceModel out;
  WireReader reader(bytes, where);
  for (WireField field; reader.next(field);) {
    if (field.number == 1) out.pieces.push_back(read_scored_piece(field.bytes, where));
    if (field.number == 2) read_training(field.bytes, where, out);
    if (field.number == 3) read_normalising(field.bytes, where, out);
  }
  check(!out.pieces.empty(), "{}: the model has no pieces", where);
  std::unordered_set<std::string_view> seen;
  for (const ScoredPiece& piece : out.pieces)
    check(seen.insert(piece.text).second, "{}: the piece {} stands there twice", where, in_quotes(piece.text));
  return out;
}

}  // namespace mh::detail
