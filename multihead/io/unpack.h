// Compressed files, told by their first bytes: gzip and xz are unpacked, others are refused by name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "multihead/io/file_bytes.h"

namespace mh::detail {

// The compression whose file begins so: "gzip", "xz", "bzip2", "zstd", "lz4" or "zip"; empty where none does. The
// file's name has no say.
std::string_view packing_of(std::span<const std::byte> start);

// The bytes of a file, unpacked where they are gzip or xz: all members of a file that holds several, one behind the
// other. Throws: as read_file; io where the compressed data are damaged or end early; unsupported for the other
// compressions.
FileBytes read_unpacked(const std::string& path);

}  // namespace mh::detail
