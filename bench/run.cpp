// Chooses the cases and measures them.
#include "bench/run.h"

#include <algorithm>

#include "multihead/base/parallel.h"
#include "multihead/ops/machine.h"

namespace mh::bench {
namespace {

bool holds(const std::vector<std::string>& wanted, std::string_view name) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

bool contains_part(const std::vector<std::string>& parts, std::string_view name) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
           return name.find(part) != std::string_view::npos;
         });
}

Prepared prepare(const Case& c) {
  switch (c.pass) {
    case Pass::decode: return prepare_decode(c);
    case Pass::gemm: return prepare_gemm(c);
    case Pass::rows: return prepare_rows(c);
    default: return prepare_attention(c);
  }
}

Row measure_case(const Case& c, const Budget& budget) {
  const Prepared prepared = prepare(c);
  Row row{.c = c, .rung = std::string(rung_name()), .unit = prepared.unit, .outcome = {}};
  if (!c.comparison) {
    row.outcome = measure(prepared.subject, prepared.reference, budget);
    return row;
  }
  Case plain = c;
  plain.sizes = c.comparison->plain;
  plain.feature = "plain";
  const Subject beside = prepare(plain).subject;
  row.outcome = measure(prepared.subject, prepared.reference, budget, &beside);
  if (!c.comparison->by_time) *row.outcome.ratio *= touched_operations(plain) / touched_operations(c);
  return row;
}

// Puts the number of threads back, whatever happens.
class ThreadsBack {
 public:
  ThreadsBack() : before_(threads()) {}
  ~ThreadsBack() { set_threads(before_); }
  ThreadsBack(const ThreadsBack&) = delete;
  ThreadsBack& operator=(const ThreadsBack&) = delete;

 private:
  int before_;
};

}  // namespace

std::vector<Case> select(const std::vector<Case>& cases, const Selection& selection) {
  std::vector<Case> chosen;
  for (const Case& c : cases) {
    const bool threads_fit = selection.threads.empty() || std::find(selection.threads.begin(), selection.threads.end(),
                                                                    c.threads) != selection.threads.end();
    if ((c.quick || !selection.quick) && threads_fit && holds(selection.dtypes, mh::name(c.dtype)) &&
        holds(selection.passes, name(c.pass)) && contains_part(selection.names, c.name))
      chosen.push_back(c);
  }
  return chosen;
}

Report run(const std::vector<Case>& cases, const Selection& selection,
           const std::function<void(const Row* row, size_t done)>& on_row) {
  const ThreadsBack back;
  const double seconds = selection.seconds > 0 ? selection.seconds : selection.quick ? 0.1 : 0.5;
  const Budget budget{.seconds = seconds, .least = selection.quick ? 3 : 9};
  Report report;
  on_row(nullptr, 0);
  for (int count = 1; count <= 1024; ++count) {
    if (std::none_of(cases.begin(), cases.end(), [&](const Case& c) { return c.threads == count; })) continue;
    set_threads(count);
    report.limits.push_back(measure_limits());
  }
  for (const Case& c : cases) {
    set_threads(c.threads);
    report.rows.push_back(measure_case(c, budget));
    on_row(&report.rows.back(), report.rows.size());
  }
  return report;
}

}  // namespace mh::bench
