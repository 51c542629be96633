// What multihead.Recording holds.
#pragma once

#include "multihead/show/recording.h"

namespace mh::python {

// Never changes: every method may be called from many threads at once.
struct RecordingObject {
  Recording recording;
};

}  // namespace mh::python
