// The reading of "pattern", and replacing what it finds.
#include "multihead/text/pipeline/searched.h"

#include "multihead/base/error.h"

namespace mh::detail {

Searched::Searched(const JsonFields& fields) {
  const std::string where = fields.where() + ": pattern";
  const JsonFields pattern(fields.element("pattern"), where, {"String", "Regex"});
  if (pattern.find("Regex")) {
    pattern_ = std::make_shared<const Pattern>(pattern.string("Regex"), where);
    return;
  }
  literal_ = pattern.string("String");
  check(!literal_.empty(), "{}: the string is empty; expected at least one character", where);
}

std::string Searched::replaced(std::string_view text, std::string_view with) const {
  std::string out;
  size_t from = 0;
  each_match(text, [&](size_t begin, size_t end) {
    out.append(text, from, begin - from).append(with);
    from = end;
  });
  return out.append(text, from);
}

}  // namespace mh::detail
