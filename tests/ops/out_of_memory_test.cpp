// Memory that cannot be had is an mh::Error with the bytes that were asked for, never std::bad_alloc.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "multihead/base/out_of_memory.h"
#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/kv_cache.h"
#include "multihead/ops/products/matmul.h"

namespace mh {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Addresses that this process has.
int64_t address_space() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// No more than 2 GiB beyond what there is, while it lives. A sanitizer needs more itself.
class LittleMemory {
 public:
  LittleMemory() {
    getrlimit(RLIMIT_AS, &before_);
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(address_space() + 2 * kGiB);
    setrlimit(RLIMIT_AS, &less);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

class OutOfMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer takes more addresses than are left here";
#endif
  }

  // What `call` says, and how many bytes it asked for.
  template <class Call>
  static void expect(int64_t bytes, const std::string& sentence, Call call) {
    const LittleMemory little;
    try {
      call();
      ADD_FAILURE() << "no refusal; expected " << sentence;
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(static_cast<int64_t>(error.bytes()), bytes) << error.what();
      EXPECT_EQ(std::string(error.what()), sentence);
      EXPECT_EQ(error.kind(), ErrorKind::internal);
    }
  }
};

const std::string kNotToBeHad = " cannot be allocated; expected a smaller call, or more memory";

TEST_F(OutOfMemoryTest, ATensor) {
  expect(8 * kGiB, "empty: 8589934592 bytes of memory for f32 [2, 1073741824]" + kNotToBeHad, [] { zeros({2, kGiB}); });
  EXPECT_EQ(zeros({4}).item({3}), 0) << "what follows works";
}

TEST_F(OutOfMemoryTest, AResultOfBroadcastInputs) {
  const Tensor a = zeros({1, 4}).broadcast_to({kGiB / 4, 4}), w = zeros({4, 8});
  expect(8 * kGiB, "empty: 8589934592 bytes of memory for f32 [268435456, 8]" + kNotToBeHad, [&] { matmul(a, w); });
}

TEST_F(OutOfMemoryTest, ACache) {
  expect(8 * kGiB, "empty: 8589934592 bytes of memory for f32 [1, 1, 33554432, 64]" + kNotToBeHad,
         [] { KVCache({.capacity = kGiB / 32}); });
}

TEST_F(OutOfMemoryTest, BiasesOfDistancesFarApart) {
  const Tensor q = randn({2, 2, 3, 8}, 1), k = randn({2, 2, 5, 8}, 2);
  const Tensor far = tensor<int32_t>({0, 1 << 30}, {2}), slopes = full({2}, 1);
  const AttentionResult result = attention(q, k, k);
  const AttentionOptions options{.mask = positions(far), .bias = {AlibiBias{slopes}}};
  const int64_t bytes = (kGiB + 7) * 2 * 4;
  const std::string rest = fmt::format(": {} bytes of memory for the biases of all distances{}", bytes, kNotToBeHad);
  expect(bytes, "attention_weights" + rest, [&] { attention_weights(q, k, result.lse, options); });
  expect(bytes, "attention_backward" + rest, [&] { attention_backward({q, k, k, result}, q, {}, options); });
}

TEST_F(OutOfMemoryTest, TheListsOfACall) {
  const Tensor q = zeros({1, 1, 1, 1}).broadcast_to({INT32_MAX, 1, 1, 1});
  const LittleMemory little;
  EXPECT_THROW(explain(q, q, q), OutOfMemory);
}

}  // namespace
}  // namespace mh
