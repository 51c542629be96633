// Marian (opus-mt) and Pegasus: sinusoids, all sines before all cosines, and a learned bias of the output.
#include "multihead/models/families/bart_body.h"
#include "multihead/models/families/list.h"

namespace mh::detail {

namespace {

void marian(ConfigFields& fields, Architecture& a) {
  bart_keys(
      fields, a,
      {.norm = NormPlace::after, .vocabulary = 58101, .tokens = {.pad = 58100, .decoder_start = 58100, .ends = {0}}},
      false);
  int64_t& words = a.decoder_embedding->vocabulary;
  if (fields.is_reading()) words = a.embedding->vocabulary;
  fields.size("decoder_vocab_size", words);
}

void pegasus(ConfigFields& fields, Architecture& a) {
  bart_keys(fields, a, {.norm = NormPlace::before, .tokens = {.pad = 0, .decoder_start = 0, .ends = {1}}}, false);
}

void marian_head(Architecture& a) { bart_head(a, true); }

// Sinusoids are made anew, wherever a file holds them.
const std::vector<std::string_view> kMarianIgnored{"*.embed_positions.weight"};

}  // namespace

const Family kMarian{
    .type = "marian",
    .prefixes = {"model."},
    .classes = {{"MarianMTModel", HeadKind::seq2seq_lm, "final_logits_bias"}, {"MarianModel", HeadKind::none}},
    .keys = marian,
    .head = marian_head,
    .names = bart_names,
    .ignored = kMarianIgnored};

const Family kPegasus{.type = "pegasus",
                      .prefixes = {"model."},
                      .classes = {{"PegasusForConditionalGeneration", HeadKind::seq2seq_lm, "final_logits_bias"},
                                  {"PegasusModel", HeadKind::none}},
                      .keys = pegasus,
                      .head = marian_head,
                      .names = bart_names,
                      .ignored = kMarianIgnored};

}  // namespace mh::detail
