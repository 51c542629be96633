// `multihead eval` of a classifier and of a tagger.
#pragma once

#include <string>
#include <vector>

#include "multihead/base/dtype.h"

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

}  // namespace mh::cli
