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
      "time; of image_class and speech_class a folder with one for each label, or a table of files and labels, and of "
      "image_class also pictures in an IDX file.");
  data.text(
      "train_target", &D::train_target,
      "The target sentences, line by line those of train; empty: train is TSV. Of image_class the labels of an IDX "
      "file.");
  data.text("valid", &D::valid, "The validation data, as train; empty: no validation.");
  data.text("valid_target", &D::valid_target, "The target sentences of valid, as train_target.");
  data.integer(
      "hold_out", &D::hold_out, {0, 10 * kMillion},
      "Examples of train kept for validation where valid is empty, all of a source together; of a language model's text, "
      "its last lines; 0: none.");
  data.number(
      "hold_out_share", &D::hold_out_share, {.high = 0.5},
      "The same as a share of the examples, where hold_out is 0; of a text that is taken as it is, of its bytes.");
  data.choice<TextLines>(
      "lines", &D::lines, {{"sentences", TextLines::sentences}, {"text", TextLines::text}},
      "Of a language model: each line ends with the token </s>, and blank ones are skipped; or the text "
      "is taken as it is: a line's break is a token of its own, and blank lines stay.");
  data.integer("source_column", &D::source_column, {1, 1000}, "Column of the source sentence in a TSV file.");
  data.integer("target_column", &D::target_column, {1, 1000}, "Column of the target sentence in a TSV file.");
  data.column(
      "text", &D::text,
      "Of classify: the column of the text, by number or by name; of image_class and speech_class: of the file.");
  data.column("label", &D::label, "Of a classifier: the column of its label.");
  data.text(
      "label_separator", &D::label_separator,
      "With task.labels = \"several\": what stands between two labels of a text; alone it means that there is none.");
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
               "Of a classifier: examples in a batch; of answer and recommend: windows.");
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
  data.integer("image_size", &D::image_size, {0, 4096},
               "Of image_class: pixels a side to which pictures are brought; 0: the size of the first one.");
  data.integer(
      "shift", &D::shift, {0, 4096},
      "Pixels by which a picture, or frames by which a recording is moved at most while it is learned, each way.");
  data.flag("flip", &D::flip,
            "Of image_class: whether half of the pictures are learned with left and right exchanged.");
  data.number(
      "colour_noise", &D::colour_noise, {},
      "Of image_class: share by which contrast and each channel's brightness are changed at most while a picture "
      "is learned.");
  data.integer(
      "frames", &D::frames, {1, 65536},
      "Of speech_class: frames, 10 ms each, that a recording is cut or filled up to; a multiple of model.patch.");
  data.integer("time_mask", &D::time_mask, {0, 65536},
               "Of speech_class: most frames in a row that are hidden while a recording is learned.");
  data.integer("mel_mask", &D::mel_mask, {0, 40},
               "Of speech_class: most bands of frequencies in a row that are hidden while a recording is learned.");
}

}  // namespace mh::detail
