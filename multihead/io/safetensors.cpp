// Safetensors files: from bytes to tensors and back.
#include "multihead/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "multihead/base/memory.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/safetensors_bytes.h"
#include "multihead/io/safetensors_hash.h"
#include "multihead/io/safetensors_header.h"
#include "multihead/tensor/storage.h"

namespace mh {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr size_t kLengthBytes = sizeof(uint64_t);

template <class... Args>
void require(bool holds, const std::string& name, fmt::format_string<Args...> form, Args&&... args) {
  if (!holds)
    fail(ErrorKind::io, "safetensors: {}: {}", printable_path(name), fmt::format(form, std::forward<Args>(args)...));
}

// Memory that lives as long as somebody else's does.
struct Kept {
  explicit Kept(const detail::FileBytes& file) : keeper(file.keeper), storage(file.bytes.data()) {}
  std::shared_ptr<void> keeper;
  Storage storage;
};

std::string_view header_of(std::span<const std::byte> bytes, const std::string& name) {
  require(bytes.size() >= kLengthBytes, name, "{} bytes are too few for such a file; expected at least {}",
          bytes.size(), kLengthBytes);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  require(length <= static_cast<uint64_t>(detail::kLongestHeader), name,
          "the first {} bytes say a header of {}; expected at most {}; this is another kind of file", kLengthBytes,
          length, detail::kLongestHeader);
  require(length <= bytes.size() - kLengthBytes, name, "a header of {} bytes in a file of {}; the file is cut short",
          length, bytes.size());
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  require(length > 0 && text[0] == '{', name, "the header does not begin with '{{'");
  return {text, length};
}

bool is_aligned(const void* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size_of(dtype)) == 0;
}

// C++ knows two bools; what a file holds may be neither.
bool holds_bools(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return static_cast<uint8_t>(b) <= 1; });
}

}  // namespace

namespace detail {

Safetensors view_safetensors(const FileBytes& file, const std::string& name, const SafetensorsOptions& options) {
  const std::string_view json = header_of(file.bytes, name);
  const std::span<std::byte> data = file.bytes.subspan(kLengthBytes + json.size());
  SafetensorsHeader header = parse_safetensors_header(json, static_cast<int64_t>(data.size()), name);

  const auto kept = std::make_shared<Kept>(file);
  const std::shared_ptr<Storage> storage(kept, &kept->storage);
  Safetensors out{.tensors = {}, .metadata = std::move(header.metadata)};
  if (const auto digits = out.metadata.extract(kHashKey)) {
    out.hashed = true;
    require(
        !options.verify || has_hash(file.bytes, kLengthBytes + json.size(), digits.mapped()), name,
        "the file is damaged: its bytes differ from the hash that was written with them (a program that rewrites the "
        "file has to drop {} from its metadata)",
        kHashKey);
  }
  for (const SafetensorsEntry& entry : header.entries) {
    const auto bytes = data.subspan(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.end - entry.begin));
    require(entry.dtype != DType::boolean || holds_bools(bytes), name, "tensor {} holds bools that are neither 0 nor 1",
            printable(entry.name));
    Tensor tensor;
    if (is_aligned(bytes.data(), entry.dtype)) {
      tensor = Tensor(storage, dense_view(bytes.data(), entry.shape, entry.dtype));
    } else {
      tensor = empty(entry.shape, entry.dtype);
      std::memcpy(tensor.view().data, bytes.data(), bytes.size());
    }
    out.tensors.emplace(entry.name, std::move(tensor));
  }
  return out;
}

std::vector<std::span<const std::byte>> SafetensorsBytes::parts() const {
  std::vector<std::span<const std::byte>> out{std::as_bytes(std::span(head))};
  for (const Tensor& tensor : dense)
    out.emplace_back(static_cast<const std::byte*>(tensor.view().data),
                     static_cast<size_t>(tensor.count() * size_of(tensor.dtype())));
  return out;
}

SafetensorsBytes serialise(const Safetensors& file) {
  SafetensorsHeader header{.entries = {}, .metadata = file.metadata};
  header.metadata[kHashKey] = hash_placeholder();
  for (const auto& [name, tensor] : file.tensors) {
    check(static_cast<bool>(tensor), "safetensors: tensor {} is empty; expected one with memory", printable(name));
    header.entries.push_back({.name = name, .dtype = tensor.dtype(), .shape = tensor.shape()});
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const auto& a, const auto& b) { return size_of(a.dtype) > size_of(b.dtype); });
  int64_t at = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin = at;
    at = entry.end = at + entry.shape.count() * size_of(entry.dtype);
  }

  const std::string json = write_safetensors_header(header);
  const uint64_t length = json.size();
  SafetensorsBytes out;
  out.head.resize(kLengthBytes);
  std::memcpy(out.head.data(), &length, kLengthBytes);
  out.head += json;
  for (const SafetensorsEntry& entry : header.entries)
    out.dense.push_back(file.tensors.at(entry.name).contiguous().to(Device{}));
  const std::vector<std::span<const std::byte>> parts = out.parts();
  put_hash(out.head, std::span(parts).subspan(1));
  return out;
}

}  // namespace detail

Safetensors read_safetensors(const std::string& path, const SafetensorsOptions& options) {
  return detail::view_safetensors(detail::map_file(path), path, options);
}

Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  detail::FileBytes copy;
  copy.keeper = std::shared_ptr<void>(allocate_bytes(bytes.size()), release_bytes);
  copy.bytes = {static_cast<std::byte*>(copy.keeper.get()), bytes.size()};
  std::copy(bytes.begin(), bytes.end(), copy.bytes.begin());
  return detail::view_safetensors(copy, name);
}

void write_safetensors(const std::string& path, const Safetensors& file) {
  write_durably(path, detail::serialise(file).parts());
}

}  // namespace mh
