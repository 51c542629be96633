// TensorBoard's event files.
//
//   record: length (8 bytes), its checksum (4), the event, its checksum (4)
//   Event   { 1: double time, 2: varint step, 3: string version | 5: Summary | 7: SessionLog }
//   Summary { 1: Value … },  Value { 1: string name, 2: float number },  SessionLog { 1: varint status (1: start) }
#include "multihead/train/log/event_file.h"

#include <array>
#include <cstring>

namespace mh::detail {

namespace {

// A field's number and how its value is written.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr uint64_t key(uint32_t field, Wire wire) { return field << 3 | wire; }
constexpr size_t kLengthBytes = 8, kChecksumBytes = 4;

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}

// Turned and shifted, so that the checksum of bytes that hold checksums is no fixed point.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

std::string bytes_field(uint32_t field, std::string_view bytes) {
  return varint(key(field, kBytes)) + varint(bytes.size()) + std::string(bytes);
}

std::string event(double time, const std::string& what) { return varint(key(1, kFixed64)) + raw(time) + what; }

std::string record(const std::string& event) {
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  return length + raw(masked_crc(length)) + event + raw(masked_crc(event));
}

std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// The step of an event that this file wrote, where it holds a Summary.
std::optional<int64_t> scalar_step(std::string_view event) {
  constexpr size_t kTimeBytes = 1 + sizeof(double);
  if (event.size() < kTimeBytes) return std::nullopt;
  event.remove_prefix(kTimeBytes);
  const std::optional<uint64_t> step_key = take_varint(event), step = take_varint(event), what = take_varint(event);
  if (step_key != key(2, kVarint) || !step || what != key(5, kBytes)) return std::nullopt;
  return static_cast<int64_t>(*step);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~crc;
}

std::string event_file_start(double time) {
  const std::string started = varint(key(1, kVarint)) + varint(1);
  return record(event(time, bytes_field(3, "brain.Event:2"))) + record(event(time, bytes_field(7, started)));
}

std::string scalar_event(double time, int64_t step, const Metrics& metrics) {
  std::string summary;
  for (const auto& [name, number] : metrics)
    summary += bytes_field(1, bytes_field(1, name) + varint(key(2, kFixed32)) + raw(static_cast<float>(number)));
  return record(event(time, varint(key(2, kVarint)) + varint(static_cast<uint64_t>(step)) + bytes_field(5, summary)));
}

std::optional<EventRecord> read_event(std::string_view bytes) {
  constexpr size_t kHead = kLengthBytes + kChecksumBytes;
  if (bytes.size() < kHead + kChecksumBytes) return std::nullopt;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kHead - kChecksumBytes) return std::nullopt;
  const std::string_view event = bytes.substr(kHead, length);
  if (bytes.substr(kLengthBytes, kChecksumBytes) != raw(masked_crc(bytes.substr(0, kLengthBytes))) ||
      bytes.substr(kHead + length, kChecksumBytes) != raw(masked_crc(event)))
    return std::nullopt;
  return EventRecord{.bytes = bytes.substr(0, kHead + length + kChecksumBytes), .step = scalar_step(event)};
}

}  // namespace mh::detail
