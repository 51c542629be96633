// The table before any instruction set.
#include "multihead/kernels/cpu/plain/plain.h"

namespace mh::kernels {

Table plain::refine(Table below) {
  below.composed_forward.run = composed_forward;
  below.composed_backward.run = composed_backward;
  below.composed_weights.run = composed_weights;
  below.composed_statistics.run = composed_statistics;
  below.lse_choice.run = lse_choice;
  below.relative_bias_forward.run = relative_bias_forward;
  below.relative_bias_backward.run = relative_bias_backward;
  below.merge_forward.run = merge_forward;
  below.merge_backward.run = merge_backward;
  below.cache_append.run = cache_append;
  below.rope_angles.run = rope_angles;
  below.total.run = total;
  below.take_rows.run = take_rows;
  below.put_rows.run = put_rows;
  return below;
}

}  // namespace mh::kernels
