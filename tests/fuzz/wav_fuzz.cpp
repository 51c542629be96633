// Bytes as a recording: read or refused, never more.
#include <cstddef>
#include <cstdint>
#include <span>

#include "multihead/base/error.h"
#include "multihead/io/sounds/wav_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    mh::decode_wav(std::as_bytes(std::span(data, size)), "it");
  } catch (const mh::Error&) {
  }
  return 0;
}
