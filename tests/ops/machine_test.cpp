// The machine as the library tells of it.
#include "multihead/ops/machine.h"

#include <gtest/gtest.h>

#include "multihead/base/error.h"

namespace mh {
namespace {

TEST(Machine, TheRungInUseIsAUsableOne) {
  bool found = false;
  for (const RungInfo& rung : machine_rungs()) {
    found = found || (rung.name == rung_name() && rung.usable);
    EXPECT_EQ(rung.usable, rung.why.empty()) << rung.name;
  }
  EXPECT_TRUE(found) << rung_name();
}

TEST(Machine, EveryUsableRungCanBeChosenAndNoOther) {
  const std::string before(rung_name());
  for (const RungInfo& rung : machine_rungs()) {
    if (rung.usable) {
      use_rung(rung.name);
      EXPECT_EQ(rung_name(), rung.name);
    } else {
      EXPECT_THROW(use_rung(rung.name), Error);
    }
  }
  EXPECT_THROW(use_rung("quantum"), Error);
  use_rung(before);
}

TEST(Machine, CpuInfoKnowsItsCores) { EXPECT_GE(cpu_info().cores, 1); }

}  // namespace
}  // namespace mh
