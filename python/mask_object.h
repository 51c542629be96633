// The masks of Python: ours, the arrays they read, and their text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "multihead/ops/attention/mask.h"
#include "python/array.h"

namespace mh::python {

struct MaskObject {
  Mask mask;
  std::vector<std::shared_ptr<Array>> kept;  // memory of keep() and drop()
  std::string text;
};

MaskObject operator&(const MaskObject& a, const MaskObject& b);

}  // namespace mh::python
