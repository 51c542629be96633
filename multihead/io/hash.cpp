// A fast hash of bytes: XXH3 with 128 bits, compiled in from its header.
#define XXH_INLINE_ALL
#include "multihead/io/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace mh::detail {

struct Hash::State {
  XXH3_state_t value;
};

Hash::Hash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->value); }
Hash::Hash(Hash&&) noexcept = default;
Hash::~Hash() = default;

void Hash::add(std::span<const std::byte> bytes) { XXH3_128bits_update(&state_->value, bytes.data(), bytes.size()); }

std::string Hash::digits() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->value);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace mh::detail
