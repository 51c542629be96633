// Counting rows by what is wrong with them.
#include "multihead/tasks/readers/broken_rows.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"

namespace mh {

void BrokenRows::note(int64_t line, const std::string& why) {
  ++skipped_;
  const auto known =
      std::find_if(reasons_.begin(), reasons_.end(), [&](const Reason& each) { return each.why == why; });
  if (known == reasons_.end())
    reasons_.push_back({why, 1, line});
  else
    ++known->count;
}

void BrokenRows::add(int64_t line, const std::string& why) {
  note(line, why);
  if (++broken_ <= most_) return;
  fail(ErrorKind::invalid_argument, "{}:{}: {}; {} broken row{} where data.max_broken is {}", printable_path(name_),
       line, why, broken_, broken_ == 1 ? "" : "s", most_);
}

std::vector<std::string> BrokenRows::sentences(int64_t rows) const {
  std::vector<std::string> out;
  for (const Reason& each : reasons_)
    out.push_back(fmt::format("{}: skipped {} of {} rows ({}line {}): {}", name_, each.count, rows,
                              each.count == 1 ? "" : "the first is ", each.first_line, each.why));
  return out;
}

}  // namespace mh
