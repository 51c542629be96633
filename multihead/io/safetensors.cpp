// Safetensors files: from bytes to tensors and back.
#include "multihead/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/safetensors_bytes.h"
#include "multihead/io/safetensors_hash.h"
#include "multihead/io/safetensors_header.h"
#include "multihead/io/tensors_in_file.h"

namespace mh {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr size_t kLengthBytes = sizeof(uint64_t);

template <class... Args>
void require(bool holds, const std::string& name, fmt::format_string<Args...> form, Args&&... args) {
  if (!holds)
    fail(ErrorKind::io, "safetensors: {}: {}", printable_path(name), fmt::format(form, std::forward<Args>(args)...));
}

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

}  // namespace

namespace detail {

Safetensors view_safetensors(const FileBytes& file, const std::string& name, const SafetensorsOptions& options) {
  const std::string_view json = header_of(file.bytes, name);
  const std::span<std::byte> data = file.bytes.subspan(kLengthBytes + json.size());
  SafetensorsHeader header = parse_safetensors_header(json, static_cast<int64_t>(data.size()), name);

  const TensorsInFile tensors(file);
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
    out.tensors.emplace(entry.name, tensors.at(bytes, entry.shape, entry.dtype));
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
  return detail::view_safetensors(detail::copy_of(bytes), name);
}

void write_safetensors(const std::string& path, const Safetensors& file) {
  write_durably(path, detail::serialise(file).parts());
}

}  // namespace mh
