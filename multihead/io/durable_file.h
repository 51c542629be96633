// Files that are there whole or not at all, whatever stops the process or the machine.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

// Writes the parts one behind the other: to a temporary file in the same folder, synced, renamed over `path`, and the
// folder synced. A reader, or a machine that lost power, sees the old file or the new one, never a mixture. A link
// stays one: what it names is replaced. What is not a file (a pipe, a terminal, /dev/null) is written to as it is.
// Throws: io, with the system's reason; then the file that was at `path` is as it was and the temporary one is gone.
void write_durably(const std::string& path, const std::vector<std::span<const std::byte>>& parts);
void write_durably(const std::string& path, std::string_view text);

// The folder and those above it, where they are missing; durable. Throws: io.
void make_folder(const std::string& folder);

// Throw, io with the reason, where the file, or files below the folder, could not be written: as far as can be told
// without writing anything, for those who compute for long before they write. A folder may be missing, and those above.
void check_writable_file(const std::string& path);
void check_writable_folder(const std::string& folder);

// Deletes what writers that were killed left behind in `folder`: temporary files of names that begin with `prefix`.
// Only for a folder nobody else is writing to. Files that cannot be deleted stay.
void remove_leftovers(const std::string& folder, std::string_view prefix);

}  // namespace mh
