// Any bytes as a SentencePiece model: refused with an Error, or a tokenizer that takes any text.
#include <cstdint>
#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/text/legacy/as_json.h"
#include "multihead/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const mh::detail::PieceModel model =
        mh::detail::read_piece_model({reinterpret_cast<const char*>(data), size}, "fuzz");
    const mh::Tokenizer tokenizer = mh::Tokenizer::parse(mh::detail::piece_json(model, {}, "fuzz"), "fuzz");
    tokenizer.decode(tokenizer.encode_input("The  dog's \xef\xac\x81 e\xcc\x81 \xe4\xbd\xa0\xff").ids);
  } catch (const mh::Error&) {
    return 0;
  }
  return 0;
}
