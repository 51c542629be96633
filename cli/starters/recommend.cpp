// The starter of `multihead new recommend`.
#include <fmt/format.h>

#include <iterator>

#include "cli/starters/starters.h"

namespace mh::cli {

namespace {

constexpr const char* kRecommendConfig =
    R"text(# Which item a user wants next, learned from what users had one after the other.
# To train: multihead train FOLDER/config.toml; to use it: multihead recommend FOLDER/model < HISTORIES
# multihead train --keys says what every key means.
[task]
kind = "recommend"
# metric = "hr@10"             # the model is judged by NDCG at 10; or by the hit rate

[data]
train = "FOLDER/train.tsv"     # your own: a row for every event; .csv with header = true works, too
user = 1                       # columns, by number or, where a first row names them, by name
item = 2
time = 3                       # a number that grows, such as seconds; time = "": rows stand in their order
max_length = 50                # items of a history that are read at once
examples_per_batch = 16
# The last item of every user is kept for `multihead eval`, the last but one to validate with.

[model]
width = 32                     # 64 for thousands of items
heads = 2
feed_forward = 64
decoder_layers = 2
activation = "gelu"
positions = "learned"
max_length = 50
dropout = 0.1

[optimizer]
learning_rate = 5e-3
weight_decay = 0.01
warmup = 20

[train]
output = "FOLDER/model"
epochs = 60
label_smoothing = 0.0
patience = 15
)text";

// Series, which are seen in their order, each user beginning somewhere.
constexpr const char* kSeries[][6] = {
    {"The Lighthouse", "The Lighthouse II", "The Lighthouse III", "Storm at Sea", "Storm at Sea II",
     "The Last Harbour"},
    {"Red Planet Diary", "Blue Planet Diary", "The Long Orbit", "The Long Orbit II", "Home from Saturn",
     "Comet Winter"},
    {"Tea with Agnes", "Agnes in Paris", "Agnes and the Baker", "A Letter to Agnes", "Agnes Returns", "Farewell Agnes"},
    {"The Silent Clock", "The Ninth Key", "A Glass of Poison", "The Empty Train", "The Butler's Tale", "Case Closed"}};
constexpr int kUsers = 48;

std::string recommend_rows() {
  constexpr int kKinds = static_cast<int>(std::size(kSeries)), kFilms = static_cast<int>(std::size(kSeries[0]));
  std::string out;
  for (int user = 0; user < kUsers; ++user) {
    const int kind = user % kKinds, begin = (user / kKinds) % kFilms, count = 4 + user % 3;
    for (int n = 0; n < count; ++n)
      out += fmt::format("user{}\t{}\t{}\n", user + 1, kSeries[kind][(begin + n) % kFilms], 1000 + 60 * user + n);
  }
  return out;
}

}  // namespace

Starter recommend_starter() {
  return {.task = "recommend",
          .rows = "a line is a user, an item and a time, with tabs between them",
          .files = {{"config.toml", kRecommendConfig}, {"train.tsv", recommend_rows()}}};
}

}  // namespace mh::cli
