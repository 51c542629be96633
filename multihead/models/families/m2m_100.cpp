// M2M-100 and NLLB: norms before, sinusoids of their own layout from position 2 on, no bias of the output.
#include "multihead/models/families/bart_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void m2m_100_keys(ConfigFields& fields, Architecture& a) {
  bart_keys(fields, a,
            {.norm = NormPlace::before,
             .sinusoids = SinusoidLayout::spread,
             .offset = 2,
             .middle = Middle::relu,
             .vocabulary = 128112,
             .tokens = {.pad = 1, .begin = 0, .decoder_start = 2, .ends = {2}}},
            true);
}

void m2m_100_head(Architecture& a) { bart_head(a, false); }

}  // namespace

const Family kM2m100{.type = "m2m_100",
                     .prefixes = {"model."},
                     .classes = {{"M2M100ForConditionalGeneration", HeadKind::seq2seq_lm, "lm_head.weight"},
                                 {"M2M100Model", HeadKind::none}},
                     .keys = m2m_100_keys,
                     .head = m2m_100_head,
                     .names = bart_names,
                     .ignored = {"*.embed_positions.weights", "*.embed_positions.weight"}};

}  // namespace mh::detail
