// Copies of elements on the CPU.
#pragma once

#include "multihead/base/view.h"

namespace mh {

// Every element of a view into another of the same shape, rounded to its type. Throws: invalid_argument, before
// anything is written, where an integer does not fit a narrower type of integers.
void copy_elements(const View& to, const View& from);

}  // namespace mh
