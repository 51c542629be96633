// TensorBoard's event files: records with checksums around protocol buffers, of which only scalars are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "multihead/train/log/metrics_log.h"

namespace mh::detail {

// What a file starts with: the version, and the word that all TensorBoard may have read of this run before is void.
// Both come as one piece of bytes, as below.
std::string event_file_start(double time);

// One step's numbers; `time` in seconds since 1970.
std::string scalar_event(double time, int64_t step, const Metrics& metrics);

// The record that `bytes` begin with, and the step of its event where it holds scalars.
struct EventRecord {
  std::string_view bytes;
  std::optional<int64_t> step;
};
// Nothing where they begin with none that is whole.
std::optional<EventRecord> read_event(std::string_view bytes);

// CRC-32C of Castagnoli.
uint32_t crc32c(std::string_view bytes);

}  // namespace mh::detail
