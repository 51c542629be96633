// BART and mBART: learned positions and a normalised embedding on both sides.
#include "multihead/models/families/bart_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void bart(ConfigFields& fields, Architecture& a) {
  bart_keys(fields, a,
            {.norm = NormPlace::after,
             .embedding_norm = true,
             .learned_positions = true,
             .offset = 2,
             .tokens = {.pad = 1, .begin = 0, .decoder_start = 2, .ends = {2}}},
            false);
}

void mbart(ConfigFields& fields, Architecture& a) {
  bart_keys(fields, a,
            {.norm = NormPlace::before,
             .embedding_norm = true,
             .learned_positions = true,
             .offset = 2,
             .tokens = {.pad = 1, .begin = 0, .ends = {2}}},
            false);
}

void plain_bart_head(Architecture& a) { bart_head(a, true); }

}  // namespace

const Family kBart{.type = "bart",
                   .prefixes = {"model."},
                   .classes = {{"BartForConditionalGeneration", HeadKind::seq2seq_lm, "final_logits_bias"},
                               {"BartModel", HeadKind::none}},
                   .keys = bart,
                   .head = plain_bart_head,
                   .names = bart_names};

const Family kMbart{.type = "mbart",
                    .prefixes = {"model."},
                    .classes = {{"MBartForConditionalGeneration", HeadKind::seq2seq_lm, "final_logits_bias"},
                                {"MBartModel", HeadKind::none}},
                    .keys = mbart,
                    .head = plain_bart_head,
                    .names = bart_names};

}  // namespace mh::detail
