// One forward pass of any family, and its outputs by Hugging Face's names.
#pragma once

#include "multihead/models/pretrained/network.h"
#include "multihead/models/pretrained/pretrained.h"

namespace mh::detail {

// Throws: as Pretrained::forward.
ModelOutputs outputs_of(const Network& network, const ModelInputs& inputs, Pass& pass);

// One row of each sequence, (B, C): the one that a head reads. Throws: invalid_argument for a sequence without it.
Tensor chosen_rows(const Tensor& rows, const TokenBatch& tokens, HeadRows which, const SpecialTokens& special);

}  // namespace mh::detail
