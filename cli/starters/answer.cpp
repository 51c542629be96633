// The starter of `multihead new answer`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/starters/starters.h"

namespace mh::cli {

namespace {

constexpr const char* kAnswerConfig =
    R"text(# The part of a text that answers a question about it.
# To train: multihead train FOLDER/config.toml; to use it: multihead answer FOLDER/model -q 'Who …?' < TEXT
# multihead train --keys says what every key means.
[task]
kind = "answer"
# metric = "exact"             # the model is judged by F1; or by exact match

[data]
train = "FOLDER/train.json"    # your own: JSON as SQuAD 1.1 or 2.0 has it
hold_out_share = 0.2           # kept to validate with; or: valid = "FOLDER/valid.json"
max_length = 64                # of a window, in tokens; longer texts are read in several: 384 for pages
stride = 16                    # tokens that neighbouring windows share: 128 for pages
examples_per_batch = 8

[tokenizer]
kind = "words"
lowercase = true
min_count = 1

[model]
kind = "bert"                  # fresh; much better: from = "FOLDER of an encoder of Hugging Face's", such as MiniLM
width = 64
heads = 4
feed_forward = 128
encoder_layers = 2
activation = "gelu"
max_length = 64
dropout = 0.1

[optimizer]
learning_rate = 2e-3           # 3e-5 with model.from
warmup = 50

[train]
output = "FOLDER/model"
epochs = 60
label_smoothing = 0.0
patience = 15
)text";

struct Person {
  const char *name, *work, *town;
};
constexpr Person kPeople[] = {
    {"Ada", "mathematician", "London"}, {"Emmy", "teacher", "Vienna"},   {"Kurt", "painter", "Rome"},
    {"Grace", "pilot", "Boston"},       {"Alan", "runner", "Paris"},     {"Marie", "chemist", "Warsaw"},
    {"Lise", "physicist", "Berlin"},    {"Paul", "gardener", "Bristol"}, {"Rosa", "baker", "Lisbon"},
    {"Otto", "carpenter", "Graz"},      {"Hedy", "singer", "Salzburg"},  {"Niels", "sailor", "Copenhagen"}};

// Questions about a few sentences; each answer stands where its place says, counted in characters.
std::string answer_rows() {
  using Json = nlohmann::ordered_json;
  Json paragraphs = Json::array();
  int64_t number = 0;
  for (const Person& one : kPeople) {
    const std::string context =
        fmt::format("{} is a {}. {} lives in {}, near the river.", one.name, one.work, one.name, one.town);
    const auto question = [&](const std::string& asked, const std::string& answer) {
      return Json{{"id", fmt::format("q{}", ++number)},
                  {"question", asked},
                  {"answers", Json::array({{{"text", answer}, {"answer_start", context.rfind(answer)}}})}};
    };
    paragraphs.push_back({{"context", context},
                          {"qas", Json::array({question(fmt::format("Where does {} live?", one.name), one.town),
                                               question(fmt::format("What is {}?", one.name), one.work)})}});
  }
  return Json{{"version", "1.1"}, {"data", Json::array({{{"title", "people"}, {"paragraphs", paragraphs}}})}}.dump(1) +
         "\n";
}

}  // namespace

Starter answer_starter() {
  return {.task = "answer",
          .rows = "contexts with questions, and answers with the character at which they begin",
          .files = {{"config.toml", kAnswerConfig}, {"train.json", answer_rows()}}};
}

}  // namespace mh::cli
