// The starter of `multihead new tag`.
#include "cli/starters/starters.h"

namespace mh::cli {

namespace {

constexpr const char* kTagConfig =
    R"text(# Every word of a sentence gets a tag: B-PER begins a person's name, I-PER goes on with it, O is outside.
# To train: multihead train FOLDER/config.toml; to use it: multihead tag FOLDER/model < LINES
# multihead train --keys says what every key means.
[task]
kind = "tag"

[data]
train = "FOLDER/train.conll"   # your own: a word and its tag a line, a blank line between sentences
text = 1                       # the column of the word
label = 2                      # the column of the tag; -1: the last
hold_out_share = 0.1           # kept to validate with; or: valid = "FOLDER/valid.conll"
max_length = 128

[tokenizer]
kind = "words"                 # or "bpe": parts of words, so that names that were never seen are still read
lowercase = false              # a capital letter tells much about a name
min_count = 1

[model]
width = 128
heads = 4
feed_forward = 256
encoder_layers = 2
activation = "gelu"
positions = "learned"
max_length = 128
dropout = 0.2
embedding_dropout = 0.3
classifier_dropout = 0.3

[optimizer]
learning_rate = 1e-3
weight_decay = 0.05
warmup = 100

[train]
output = "FOLDER/model"
epochs = 30
label_smoothing = 0.0
patience = 8
)text";

constexpr const char* kTagRows = R"text(Ada B-PER
Lovelace I-PER
lives O
in O
London B-LOC
. O

Alan B-PER
Turing I-PER
works O
for O
Royal B-ORG
Society I-ORG
. O

CERN B-ORG
has O
an O
office O
in O
New B-LOC
York I-LOC
. O

Yesterday O
Emmy B-PER
Noether I-PER
left O
Vienna B-LOC
. O

In O
Rome B-LOC
Kurt B-PER
met O
people O
of O
Royal B-ORG
Society I-ORG
. O

Why O
did O
CERN B-ORG
leave O
Göttingen B-LOC
? O

Alan B-PER
Turing I-PER
lives O
in O
New B-LOC
York I-LOC
. O

Marie B-PER
Curie I-PER
works O
for O
Bell B-ORG
Labs I-ORG
. O

UNICEF B-ORG
has O
an O
office O
in O
Rome B-LOC
. O

Yesterday O
Kurt B-PER
left O
Göttingen B-LOC
. O

In O
London B-LOC
Grace B-PER
Hopper I-PER
met O
people O
of O
Bell B-ORG
Labs I-ORG
. O

Why O
did O
UNICEF B-ORG
leave O
Paris B-LOC
? O

Marie B-PER
Curie I-PER
lives O
in O
Rome B-LOC
. O

Emmy B-PER
Noether I-PER
works O
for O
CERN B-ORG
. O

Siemens B-ORG
has O
an O
office O
in O
London B-LOC
. O

Yesterday O
Grace B-PER
Hopper I-PER
left O
Paris B-LOC
. O

In O
New B-LOC
York I-LOC
Ada B-PER
Lovelace I-PER
met O
people O
of O
CERN B-ORG
. O

Why O
did O
Siemens B-ORG
leave O
Vienna B-LOC
? O

Emmy B-PER
Noether I-PER
lives O
in O
London B-LOC
. O

Kurt B-PER
works O
for O
UNICEF B-ORG
. O

Red B-ORG
Cross I-ORG
has O
an O
office O
in O
New B-LOC
York I-LOC
. O

Yesterday O
Ada B-PER
Lovelace I-PER
left O
Vienna B-LOC
. O

In O
Rome B-LOC
Alan B-PER
Turing I-PER
met O
people O
of O
UNICEF B-ORG
. O

Why O
did O
Red B-ORG
Cross I-ORG
leave O
Göttingen B-LOC
? O

Kurt B-PER
lives O
in O
New B-LOC
York I-LOC
. O

Grace B-PER
Hopper I-PER
works O
for O
Siemens B-ORG
. O
)text";

}  // namespace

Starter tag_starter() {
  return {.task = "tag",
          .rows = "a line is a word and its tag, a blank line ends a sentence",
          .files = {{"config.toml", kTagConfig}, {"train.conll", kTagRows}}};
}

}  // namespace mh::cli
