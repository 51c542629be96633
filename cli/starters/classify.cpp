// The starter of `multihead new classify`.
#include "cli/starters/starters.h"

namespace mh::cli {

namespace {

constexpr const char* kClassifyConfig = R"text(# A text gets a label. To train: multihead train FOLDER/config.toml
# To use it: multihead classify FOLDER/model < LINES
# multihead train --keys says what every key means.
[task]
kind = "classify"
# metric = "macro_f1"          # where classes differ much in size, with:
# class_weights = "balanced"

[data]
train = "FOLDER/train.tsv"     # your own: .tsv, .csv or .jsonl, compressed with gzip or xz or not
text = 1                       # the column of the text, by number or, where a first row names them, by name
label = 2                      # the column of its label
hold_out_share = 0.1           # kept to validate with; or: valid = "FOLDER/valid.tsv"
max_length = 128               # longer texts are cut, in tokens

[tokenizer]
kind = "words"                 # or "bpe": parts of words, for many different words and long texts
lowercase = true
min_count = 2                  # words that are seen less often are unknown

[model]
width = 128
heads = 4
feed_forward = 256
encoder_layers = 2
activation = "gelu"
positions = "learned"
max_length = 128
dropout = 0.2
embedding_dropout = 0.4        # a small model with few texts learns them by heart: drop much
classifier_dropout = 0.4

[optimizer]
learning_rate = 1e-3
weight_decay = 0.05
warmup = 100

[train]
output = "FOLDER/model"
epochs = 25
label_smoothing = 0.1
patience = 8                   # validations without a better one after which training stops
)text";

constexpr const char* kClassifyRows = R"text(the food was fresh and the service quick	good
the food was cold and the service slow	bad
a lovely evening, we will come back	good
a wasted evening, we left early	bad
best soup I have had in years	good
worst soup I have had in years	bad
friendly people and a fair price	good
rude people and far too expensive	bad
the room was bright and quiet	good
the room was dark and noisy	bad
we felt welcome from the first minute	good
nobody greeted us for half an hour	bad
great coffee and even better cake	good
weak coffee and dry cake	bad
everything worked as promised	good
nothing worked as promised	bad
the guide was funny and knew a lot	good
the guide was bored and knew little	bad
clean, calm and close to the station	good
dirty, loud and far from the station	bad
I would book this hotel again	good
I would never book this hotel again	bad
a warm place with good music	good
a cold place with loud music	bad
the waiter helped us to choose well	good
the waiter forgot our order twice	bad
portions are large and tasty	good
portions are tiny and bland	bad
what a beautiful garden	good
what a neglected garden	bad
our children loved the pool	good
our children were afraid of the pool	bad
fast delivery and a happy customer	good
late delivery and a broken parcel	bad
the view alone is worth the trip	good
the smell alone is a reason to leave	bad
)text";

}  // namespace

Starter classify_starter() {
  return {.task = "classify",
          .rows = "a line is a text, a tab and its label",
          .files = {{"config.toml", kClassifyConfig}, {"train.tsv", kClassifyRows}}};
}

}  // namespace mh::cli
