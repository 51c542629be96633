// A folder that one run at a time writes to.
#pragma once

#include <string>

namespace mh {

// Holds FOLDER/.lock, a file that stays. The system lets go of it when the process ends, however it ends. A file system
// without locks holds nobody off.
class FolderLock {
 public:
  // Takes the lock of a folder that is there. Throws: invalid_argument, naming the process, where another holds it; io
  // where the file cannot be made.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Makes nothing, and the folder may be missing. Throws: invalid_argument where the lock is held.
  static void check_free(const std::string& folder);

 private:
  int file_ = -1;
};

}  // namespace mh
