// The hash by which files are known, against values of another implementation (Python's xxhash 3).
#include "multihead/io/hash.h"

#include <gtest/gtest.h>

namespace mh::detail {
namespace {

TEST(Hash, IsXxh3With128Bits) {
  const std::string text = "multihead";
  Hash none, whole, parts;
  EXPECT_EQ(none.digits(), "99aa06d3014798d86001c324468d497f");
  whole.add(std::as_bytes(std::span(text)));
  EXPECT_EQ(whole.digits(), "39646693cf6cb7013b9aadfd25d55614");
  parts.add(std::as_bytes(std::span(text)).first(5));
  parts.add(std::as_bytes(std::span(text)).subspan(5));
  EXPECT_EQ(parts.digits(), whole.digits());
}

}  // namespace
}  // namespace mh::detail
