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
  if (fields.is_reading()) a.labels = {"LABEL_0", "LABEL_1", "LABEL_2"};
}

void mbart(ConfigFields& fields, Architecture& a) {
  bart_keys(fields, a,
            {.norm = NormPlace::before,
             .embedding_norm = true,
             .learned_positions = true,
             .offset = 2,
             .tokens = {.pad = 1, .begin = 0, .ends = {2}}},
            false);
  a.wraps_last = true;
}

void plain_bart_head(Architecture& a) { bart_head(a, true); }

}  // namespace

const Family kBart{
    .type = "bart",
    .prefixes = {"model."},
    .classes = {{"BartForConditionalGeneration", HeadKind::seq2seq_lm, "final_logits_bias"},
                {"BartForSequenceClassification", HeadKind::sequence, "classification_head.out_proj.weight"},
                {"BartForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                {"BartModel", HeadKind::none}},
    .keys = bart,
    .head = plain_bart_head,
    .names = bart_names};

const Family kMbart{
    .type = "mbart",
    .prefixes = {"model."},
    .classes = {{"MBartForConditionalGeneration", HeadKind::seq2seq_lm, "final_logits_bias"},
                {"MBartForSequenceClassification", HeadKind::sequence, "classification_head.out_proj.weight"},
                {"MBartForQuestionAnswering", HeadKind::question, "qa_outputs.weight"},
                {"MBartModel", HeadKind::none}},
    .keys = mbart,
    .head = plain_bart_head,
    .names = bart_names};

}  // namespace mh::detail
