// Zip archives whose entries are stored as they are: what torch.save writes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace mh::detail {

// The bytes of each entry, by name: parts of `archive`. Zip64 is read. The directory and each entry's own header say
// the same, no two entries share a byte, and each has the checksum that the directory says. `file` stands in the
// sentences. Throws: io where a rule is broken; unsupported, by name, for an entry that is compressed or encrypted.
std::map<std::string, std::span<std::byte>> read_stored_zip(std::span<std::byte> archive, const std::string& file);

}  // namespace mh::detail
