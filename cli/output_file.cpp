// Files are the same where device and inode are.
#include "cli/output_file.h"

#include <sys/stat.h>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"

namespace mh::cli {
void refuse_input_as_output(const std::string& flag, const std::string& path, const std::vector<std::string>& inputs) {
  struct stat output {};
  // What does not exist is nobody's input; a device is not overwritten.
  if (stat(path.c_str(), &output) != 0 || !S_ISREG(output.st_mode)) return;
  for (const std::string& input : inputs) {
    struct stat read {};
    if (stat(input.c_str(), &read) != 0) continue;
    check(read.st_dev != output.st_dev || read.st_ino != output.st_ino,
          "{} {} would overwrite {}, which is read; expected another file", flag, printable_path(path),
          printable_path(input));
  }
}

void check_output(const std::string& flag, const std::string& path, const std::vector<std::string>& inputs) {
  refuse_input_as_output(flag, path, inputs);
  check_writable_file(path);
}

}  // namespace mh::cli
