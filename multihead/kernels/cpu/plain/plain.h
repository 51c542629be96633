// Kernels that no instruction set refines: portable C++ with the library's own flags, the same on every rung.
#pragma once

#include "multihead/kernels/table.h"

namespace mh::kernels::plain {

// Where the ladder begins.
Table refine(Table below);

void composed_forward(const ComposedForwardArgs& args, Queue&);
void composed_backward(const ComposedBackwardArgs& args, Queue&);
void composed_weights(const ComposedWeightsArgs& args, Queue&);
void composed_statistics(const ComposedStatisticsArgs& args, Queue&);
void lse_choice(const LseChoiceArgs& args, Queue&);
void relative_bias_forward(const RelativeBiasForwardArgs& args, Queue&);
void relative_bias_backward(const RelativeBiasBackwardArgs& args, Queue&);
void merge_forward(const MergeForwardArgs& args, Queue&);
void merge_backward(const MergeBackwardArgs& args, Queue&);
void cache_append(const CacheAppendArgs& args, Queue&);
void rope_angles(const RopeAnglesArgs& args, Queue&);
void total(const TotalArgs& args, Queue&);
void take_rows(const RowCopyArgs& args, Queue&);
void put_rows(const RowCopyArgs& args, Queue&);

}  // namespace mh::kernels::plain
