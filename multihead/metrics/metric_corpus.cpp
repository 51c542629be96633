// What the metrics ask of their input, and say of it.
#include "multihead/metrics/metric_corpus.h"

#include <algorithm>

#include "multihead/base/error.h"

namespace mh::detail {

void check_corpus(std::string_view metric, const std::vector<std::string>& hypotheses,
                  const std::vector<std::vector<std::string>>& references) {
  check(hypotheses.size() == references.size(), "{}: {} sentences and references for {}; expected the same number",
        metric, hypotheses.size(), references.size());
  check(!hypotheses.empty(), "{}: no sentences; expected at least 1", metric);
  for (size_t i = 0; i < references.size(); ++i)
    check(!references[i].empty(), "{}: sentence {} has no reference; expected at least 1", metric, i + 1);
}

std::string signature_start(const std::vector<std::vector<std::string>>& references, bool lower_case) {
  const size_t count = references.front().size();
  const bool same =
      std::all_of(references.begin(), references.end(), [&](const auto& of) { return of.size() == count; });
  return fmt::format("nrefs:{}|case:{}", same ? fmt::format("{}", count) : "var", lower_case ? "lc" : "mixed");
}

std::string signature_end() { return "version:multihead-" MH_VERSION; }

}  // namespace mh::detail
