// The hash that a safetensors file carries of its own bytes: XXH3 of everything but its digits.
#include "multihead/io/safetensors_hash.h"

#include <fmt/format.h>

#include "multihead/io/hash.h"

namespace mh::detail {

namespace {

// Where the digits begin; npos where there are none. Quotes inside JSON text are escaped: this can only be the key.
size_t find_digits(std::string_view head) {
  const std::string before = fmt::format("\"{}\":\"", kHashKey);
  const size_t at = head.find(before);
  if (at == std::string_view::npos || head.size() - at - before.size() < Hash::kDigits) return std::string_view::npos;
  return at + before.size();
}

// Of a head without the digits that stand `at` in it.
Hash hash_of_head(std::string_view head, size_t at) {
  const auto bytes = std::as_bytes(std::span(head));
  Hash hash;
  hash.add(bytes.first(at));
  hash.add(bytes.subspan(at + Hash::kDigits));
  return hash;
}

}  // namespace

std::string hash_placeholder() { return std::string(Hash::kDigits, '0'); }

void put_hash(std::string& head, std::span<const std::span<const std::byte>> data) {
  const size_t at = find_digits(head);
  Hash hash = hash_of_head(head, at);
  for (const std::span<const std::byte> part : data) hash.add(part);
  head.replace(at, Hash::kDigits, hash.digits());
}

bool has_hash(std::span<const std::byte> file, size_t head_bytes, std::string_view digits) {
  const std::string_view head(reinterpret_cast<const char*>(file.data()), head_bytes);
  const size_t at = find_digits(head);
  if (at == std::string_view::npos) return false;
  Hash hash = hash_of_head(head, at);
  hash.add(file.subspan(head_bytes));
  return hash.digits() == digits;
}

}  // namespace mh::detail
