// The reference loops do the work they say, on every rung.
#include "multihead/check/limits.h"

#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/ops/machine.h"

namespace mh {
namespace {

class Limit : public testing::Test {
 protected:
  void SetUp() override {
    rung_ = rung_name();
    threads_ = threads();
  }
  void TearDown() override {
    use_rung(rung_);
    set_threads(threads_);
  }

 private:
  std::string rung_;
  int threads_ = 1;
};

TEST_F(Limit, EveryRungCountsItsMultiplyAdds) {
  for (const RungInfo& rung : machine_rungs()) {
    if (!rung.usable) continue;
    use_rung(rung.name);
    set_threads(1);
    const double one = run_multiply_adds();
    EXPECT_GT(one, 1e6) << rung.name;
    set_threads(3);
    EXPECT_EQ(run_multiply_adds(), 3 * one) << rung.name;
  }
}

TEST_F(Limit, ATurnIsNoFasterThanAnyCpuCanBe) {
  set_threads(1);
  const double before = work_seconds();
  const double work = run_multiply_adds();
  const double seconds = work_seconds() - before;
  // 64 operations a cycle at 6 GHz: a loop that the compiler emptied would be past it.
  EXPECT_LT(work / seconds, 384e9);
}

TEST_F(Limit, AReadCountsEveryByteWhateverTheThreads) {
  const Tensor memory = full({100'003}, 1);
  for (int n : {1, 2, 5}) {
    set_threads(n);
    EXPECT_EQ(run_plain_read({memory, memory}), 2 * 4 * 100'003);
  }
  EXPECT_EQ(run_plain_read({zeros({0})}), 0);
  EXPECT_THROW(run_plain_read({full({4, 6}, 1).transpose(0, 1)}), Error);
}

TEST_F(Limit, PairProductsAreThereOrRefused) {
  for (const RungInfo& rung : machine_rungs()) {
    if (!rung.usable) continue;
    use_rung(rung.name);
    EXPECT_TRUE(has_pair_products() || rung.name != "avx512_bf16");
    if (has_pair_products()) {
      EXPECT_GT(run_pair_products(), 1e6);
    } else {
      EXPECT_THROW(run_pair_products(), Error);
    }
  }
}

TEST_F(Limit, TilesAreThereOrRefused) {
  if (has_tiles()) {
    EXPECT_GT(run_tile_products(), 1e6);
    probe_tiles();
  } else {
    EXPECT_THROW(run_tile_products(), Error);
    EXPECT_THROW(probe_tiles(), Error);
  }
}

TEST_F(Limit, LimitsAreMeasuredForTheThreadsInUse) {
  set_threads(2);
  const Limits limits = measure_limits();
  EXPECT_EQ(limits.threads, 2);
  EXPECT_GT(limits.multiply_adds, 1e7);
  EXPECT_GT(limits.read_l2, 1e7);
  EXPECT_GT(limits.read_dram, 1e7);
  EXPECT_EQ(limits.pair_products > 0, has_pair_products());
  EXPECT_EQ(limits.tile_products > 0, has_tiles());
}

}  // namespace
}  // namespace mh
