// The starter of `multihead new language_model`.
#include "cli/starters/starters.h"

namespace mh::cli {

namespace {

constexpr const char* kLanguageModelConfig =
    R"text(# The next token of a text is predicted. To train: multihead train FOLDER/config.toml
# To judge it: multihead eval FOLDER/model TEXT
# multihead train --keys says what every key means.
[task]
kind = "language_model"
packed = true                  # windows run across lines; false: every line is for itself
samples = 3                    # texts that are shown at each validation

[data]
train = "FOLDER/train.txt"     # your own: plain text
hold_out_share = 0.1           # its last lines, kept to validate with; or: valid = "FOLDER/valid.txt"
tokens_per_batch = 2048
max_length = 128               # tokens of a window

[tokenizer]
vocabulary = 4000              # fewer are learned where there is little text

[model]
width = 128
heads = 4
feed_forward = 512
decoder_layers = 4
activation = "gelu"
positions = "learned"
dropout = 0.1
max_length = 128

[optimizer]
learning_rate = 1e-3
weight_decay = 0.1
warmup = 50

[train]
output = "FOLDER/model"
epochs = 40
label_smoothing = 0.0
patience = 8
)text";

constexpr const char* kLanguageModelText = R"text(The sea was calm when we left the harbour.
By noon the wind had turned to the west.
The captain looked at the sky and said nothing.
We ate bread and cheese under the sail.
In the evening the first stars came out.
Nobody slept much during the second night.
The waves grew higher, and the ship rolled.
At dawn we saw a thin line of land.
The captain looked at the map and smiled.
By noon we could see the houses of the town.
Children ran along the wall and waved.
We were tired, hungry and very happy.
The harbour was full of boats and voices.
An old man took our rope and made it fast.
He asked where we had come from.
We told him of the wind and of the waves.
He laughed and said that the sea was calm today.
In the evening we sat before a small house.
There was soup, and bread, and cheese.
The first stars came out above the hill.
The captain sang a song that nobody knew.
The next day we walked through the town.
There was a market, and we bought apples.
An old woman gave us a bag of salt.
She asked when we would leave again.
When the wind turns, the captain said.
The wind did not turn for seven days.
We mended the sail and painted the ship.
On the eighth day the wind turned to the east.
The sea was calm when we left the harbour.
)text";

}  // namespace

Starter language_model_starter() {
  return {.task = "language_model",
          .rows = "the text is lines of plain text, as it is",
          .files = {{"config.toml", kLanguageModelConfig}, {"train.txt", kLanguageModelText}}};
}

}  // namespace mh::cli
