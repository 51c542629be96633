// Which rungs tests run on.
#include "tests/harness/rungs.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>

namespace mh::harness {

std::vector<Step> steps() {
  std::vector<Step> out;
  for (const kernels::RungStatus& status : kernels::rungs()) {
    if (status.usable) out.push_back({std::string(kernels::name(status.rung)), status.rung});
  }
  if (kernels::amx_twin()) out.push_back({"amx_twin", std::nullopt});
  return out;
}

void PrintTo(const Step& step, std::ostream* out) { *out << step.name; }

Scope::Scope(const Step& step) : rung_(kernels::rung()), threads_(threads()) {
  if (step.rung) {
    kernels::use_rung(*step.rung);
  } else {
    kernels::use_amx_twin(true);
  }
}

Scope::~Scope() {
  kernels::use_amx_twin(false);
  kernels::use_rung(rung_);
  set_threads(threads_);
}

int64_t cases(int64_t usual) {
#if defined(__SANITIZE_ADDRESS__)
  usual = (usual + 15) / 16;
#elif defined(__SANITIZE_THREAD__)
  usual = (usual + 63) / 64;
#endif
  const char* text = std::getenv("MH_TEST_SCALE");
  return usual * (text ? std::max<int64_t>(1, std::atoll(text)) : 1);
}

std::string listed(const std::vector<std::string>& failures) {
  std::string text;
  for (size_t n = 0; n < failures.size() && n < 20; ++n) text += "\n" + failures[n];
  return text;
}

}  // namespace mh::harness
