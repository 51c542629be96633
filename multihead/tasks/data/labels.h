// The classes of a task: their names and their numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

class Labels {
 public:
  Labels() = default;
  // Sorts the names by their bytes and keeps each once.
  explicit Labels(std::vector<std::string> names);
  // As they are, such as those of a folder: number n is names[n].
  static Labels in_order(std::vector<std::string> names);

  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  const std::string& name(int64_t number) const { return names_[static_cast<size_t>(number)]; }
  std::optional<int32_t> number(std::string_view name) const;
  // The number. Throws: invalid_argument, beginning with `where` ("test.tsv:7"), where there is no such label.
  int32_t require(std::string_view name, const std::string& where) const;

 private:
  std::vector<std::string> names_;
  std::vector<int32_t> sorted_;  // numbers in alphabetical order of their names
};

}  // namespace mh
