// The bytes of a whole file, mapped or read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace mh::detail {

// Bytes and who keeps them: they live as long as a copy of `keeper` does. 64-byte aligned.
struct FileBytes {
  std::shared_ptr<void> keeper;
  std::span<std::byte> bytes;
};

// Copy on write: pages come from the file as they are touched, and a write makes a page of our own; the file never
// changes. Whoever shortens the file under a mapping kills the process on the next touch (ours are replaced, never
// shortened). Throws: io.
FileBytes map_file(const std::string& path);

// All of it in memory of our own: what a bad sector or a vanished mount says is an error here. Throws: io;
// std::bad_alloc.
FileBytes read_file(const std::string& path);

// The same of a pipe, to its end, too; its bytes are aligned as any of a vector. A pipe nobody writes to is empty.
FileBytes read_file_or_pipe(const std::string& path);

// A copy of bytes in memory, as if they were a file's. Throws: std::bad_alloc.
FileBytes copy_of(std::span<const std::byte> bytes);

}  // namespace mh::detail
