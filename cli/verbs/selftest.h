// `multihead selftest`, over any way to run the self-test.
#pragma once

#include <functional>

#include "multihead/check/selftest.h"

namespace CLI {
class App;
}

namespace mh::cli {

using RunSelftest = std::function<SelftestReport(const SelftestOptions&)>;

// As the verbs of verbs.h. Exit code 0 only where a case ran and none failed.
void add_selftest(CLI::App& app, int& code, const RunSelftest& selftest = mh::selftest);

}  // namespace mh::cli
