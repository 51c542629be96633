// Files are the same where device and inode are.
#include "cli/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"

namespace mh::cli {
void refuse_input_as_output(const std::string& flag, const std::string& path, const std::vector<std::string>& inputs) {
  struct stat output {};
  // What does not exist is nobody's input; a device is not overwritten.
  if (stat(path.c_str(), &output) != 0 || !S_ISREG(output.st_mode)) return;
  const auto is_output = [&](const struct stat& read) {
    return read.st_dev == output.st_dev && read.st_ino == output.st_ino;
  };
  struct stat read {};
  for (const std::string& input : inputs) {
    if (stat(input.c_str(), &read) != 0) continue;
    check(!is_output(read), "{} {} would overwrite {}, which is read; expected another file", flag,
          printable_path(path), printable_path(input));
  }
  check(fstat(STDIN_FILENO, &read) != 0 || !is_output(read),
        "{} {} would overwrite the standard input, which is read; expected another file", flag, printable_path(path));
}

void check_output(const std::string& flag, const std::string& path, const std::vector<std::string>& inputs) {
  refuse_input_as_output(flag, path, inputs);
  check_writable_file(path);
}

}  // namespace mh::cli
