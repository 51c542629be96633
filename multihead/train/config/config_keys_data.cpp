// The keys of [data].
#include "multihead/train/config/config_section.h"

namespace mh::detail {

void add_data(std::vector<ConfigKey>& keys) {
  using D = DataConfig;
  Section<D> data(keys, "data", &TrainConfig::data);
  data.text(
      "train", &D::train,
      "The training data: a TSV file of pairs, or the source sentences where train_target is given; of a language "
      "model, a text; of classify, a table; of answer, JSON as SQuAD has it; of recommend, rows of user, item and "
      "time.");
  data.text("train_target", &D::train_target,
            "The target sentences, line by line those of train; empty: train is TSV.");
  data.text("valid", &D::valid, "The validation data, as train; empty: no validation.");
  data.text("valid_target", &D::valid_target, "The target sentences of valid, as train_target.");
  data.integer(
      "hold_out", &D::hold_out, {0, 10 * kMillion},
      "Examples of train kept for validation where valid is empty, all of a source together; of a language model's text, "
      "its last lines; 0: none.");
  data.number("hold_out_share", &D::hold_out_share, {.high = 0.5},
              "The same as a share of the examples, where hold_out is 0.");
  data.integer("source_column", &D::source_column, {1, 1000}, "Column of the source sentence in a TSV file.");
  data.integer("target_column", &D::target_column, {1, 1000}, "Column of the target sentence in a TSV file.");
  data.column("text", &D::text, "Of classify: the column of the text, by number or by name.");
  data.column("label", &D::label, "Of classify: the column of its label.");
  data.column("pair", &D::pair, "Of classify: the column of a second text; empty: there is none.");
  data.column("user", &D::user, "Of recommend: the column of the user, by number or by name.");
  data.column("item", &D::item, "Of recommend: the column of the item.");
  data.column("time", &D::time, "Of recommend: the column of the time, a number; empty: rows stand in their order.");
  data.choice<TableFormat>("format", &D::format,
                           {{"by_name", TableFormat::by_name},
                            {"tsv", TableFormat::tsv},
                            {"csv", TableFormat::csv},
                            {"jsonl", TableFormat::jsonl}},
                           "What a table is: as its name tells (.csv, .jsonl, else TSV), or one of these.");
  data.flag("header", &D::header,
            "Whether the first row of a table names its columns; it does wherever a column is given by its name.");
  data.integer("max_broken", &D::max_broken, {0},
               "Broken rows of a table that are skipped and reported; one more, and the file is refused.");
  data.integer("examples_per_batch", &D::examples_per_batch, {1, kMillion},
               "Of classify: texts in a batch; of answer and recommend: windows.");
  data.integer(
      "tokens_per_batch", &D::tokens_per_batch, {1, 10 * kMillion},
      "Most tokens in a batch whose loss counts (of pairs, the target's), ends included; a longer example is a batch of "
      "its own. Of classify: tokens that a validation reads at once.");
  data.integer("window", &D::window, {1},
               "Examples that are sorted by length together, so that those of a batch are of like length.");
  data.integer(
      "max_length", &D::max_length, {0, kMillion},
      "Pairs with more tokens on a side, its end included, are skipped; other texts are cut there, those of answer "
      "and recommend into windows; 0: model.max_length.");
  data.integer("stride", &D::stride, {0, kMillion},
               "Of answer: tokens that neighbouring windows of a text share; at most half a window.");
}

}  // namespace mh::detail
