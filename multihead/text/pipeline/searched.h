// What a Split or a Replace looks for: a string as it stands, or a pattern.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "multihead/text/pattern/pattern.h"
#include "multihead/text/pipeline/read/json_fields.h"

namespace mh::detail {

class Searched {
 public:
  // The field "pattern": {"String": "..."} or {"Regex": "..."}. Throws: as Pattern; invalid_argument for anything else
  // and for an empty string.
  explicit Searched(const JsonFields& fields);

  // Calls each(begin, end) for every match, from left to right. Throws: as Pattern::each_match.
  template <class Each>
  void each_match(std::string_view text, Each&& each) const {
    if (pattern_) return pattern_->each_match(text, each);
    for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at + literal_.size()))
      each(at, at + literal_.size());
  }

  std::string replaced(std::string_view text, std::string_view with) const;

 private:
  std::string literal_;
  std::shared_ptr<const Pattern> pattern_;
};

}  // namespace mh::detail
