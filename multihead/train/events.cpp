// A metric by its name.
#include "multihead/train/events.h"

#include "multihead/base/error.h"

namespace mh {

double TrainValidation::value(const std::string& name) const {
  for (const auto& [each, number] : metrics)
    if (each == name) return number;
  fail(ErrorKind::invalid_argument, "validation: there is no metric {}; this task does not measure it", name);
}

}  // namespace mh
