// Running a test on every rung this machine has, and putting things back.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/cpu/dispatch.h"

namespace mh::harness {

// A rung, or (without one) the software twin of the AMX rung.
struct Step {
  std::string name;
  std::optional<kernels::Rung> rung;
};
// What GoogleTest shows a step as.
void PrintTo(const Step& step, std::ostream* out);

// Every usable rung, lowest first, then the twin where the machine can run it.
std::vector<Step> steps();

// The rung and the number of threads of a scope; the former ones come back at its end.
class Scope {
 public:
  explicit Scope(const Step& step);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  kernels::Rung rung_;
  int threads_;
};

// How many cases a test takes that usually takes so many: a sixteenth under ASan, a sixty-fourth under TSan, times
// MH_TEST_SCALE where that is set.
int64_t cases(int64_t usual);

// What runs on one thread, as references do, takes a few of its sizes or types only where races are looked for.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kLooksForRaces = true;
#else
inline constexpr bool kLooksForRaces = false;
#endif

// The first twenty, one a line.
std::string listed(const std::vector<std::string>& failures);

}  // namespace mh::harness
