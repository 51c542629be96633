// `multihead eval` of a classifier, a tagger, an answerer and a recommender.
#pragma once

#include <string>
#include <vector>

#include "multihead/base/dtype.h"
#include "multihead/train/config/config.h"

namespace mh::cli {

struct EvalClasses {
  std::string model, file;
  std::vector<std::string> overrides{};  // of the data section of the configuration beside the model
  DType compute = DType::f32;
  bool json = false, confusion = false;
};

// Prints accuracy, macro F1, Matthews correlation and loss, one `name value` a line; or as JSON. With `confusion` also
// the matrix, tab-separated: a row for each label of the file, a column for each that was said. Throws: as
// load_classifier, read_config and score_classes.
int eval_classes(const EvalClasses& choice);
// The same of a model that reads pictures or recordings; of an IDX file data.valid_target names the labels.
int eval_pixels(const EvalClasses& choice);
// The same of a tagger: entity F1, precision, recall, accuracy of words and loss; `confusion` is not read.
int eval_tags(const EvalClasses& choice);
// The same of an answerer: exact match and F1, in percent. Throws: as read_squad and Answerer.
int eval_answers(const EvalClasses& choice);
// The same of a recommender: NDCG and hit rate at 10 of the last item of every history, in percent, and those of
// popularity and of item kNN. Throws: as read_histories and load_language_model.
int eval_histories(const EvalClasses& choice);

// The configuration that a model was trained with, where it stands beside it, with these keys changed.
TrainConfig config_beside(const std::string& folder, const std::vector<std::string>& overrides = {});

}  // namespace mh::cli
