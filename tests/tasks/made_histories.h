// Made-up histories: every item but the first of a user follows from the one before.
#pragma once

#include <fmt/format.h>

#include <string>

#include "multihead/base/random.h"
#include "tests/harness/temporary_folder.h"

namespace mh::test {

struct MadeHistories {
  int64_t users = 40, items = 20, longest = 8;
  uint64_t seed = 1;
};

// Item n is followed by item (n + 7) mod `items`; times fall, so that the file's order is not that of time.
inline void write_histories(const std::string& path, const MadeHistories& made) {
  Random random(made.seed);
  std::string text;
  for (int64_t user = 0; user < made.users; ++user) {
    const int64_t begin = random.below(made.items), count = 4 + random.below(made.longest - 3);
    for (int64_t n = count - 1; n >= 0; --n)
      text += fmt::format("u{}\tfilm {}\t{}\n", user, (begin + 7 * n) % made.items, 100 + n);
  }
  put_text(path, text);
}

}  // namespace mh::test
