// A fast hash of bytes, to find accidents (not forgers): XXH3 with 128 bits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace mh::detail {

class Hash {
 public:
  static constexpr size_t kDigits = 32;

  Hash();
  Hash(Hash&&) noexcept;
  ~Hash();
  void add(std::span<const std::byte> bytes);
  // Of all bytes added so far, in kDigits lower-case hexadecimal digits.
  std::string digits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mh::detail
