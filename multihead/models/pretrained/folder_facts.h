// What kind of model a folder holds, told from its configs and the names of its tensors, without reading weights.
#pragma once

#include <string>
#include <string_view>

#include "multihead/models/pretrained/families.h"

namespace mh {

struct FolderFacts {
  enum class Layout { ours, hugging_face };  // our model.safetensors with its config inside, or a config.json

  Layout layout = Layout::ours;
  std::string kind{};                 // ours: "transformer", "language_model", "rnn", "lstm", "gru", "classify", "tag",
                                      // "recommend"; else model_type
  std::string model_class{};          // as config.json names it; empty: none
  HeadKind head = HeadKind::none;     // what it gives; of ours: seq2seq_lm, causal_lm, sequence or token
  bool sentence_transformer = false;  // modules.json stands beside it
  // What task_specific_params of config.json has parameters for.
  bool names_summaries = false, names_translations = false;
  bool guessed = false;  // config.json has no model_type: the names of the tensors told it

  // The program's verb for it: "classify", "tag", "answer", "fill", "embed", "generate", "translate",
  // "summarise", "recommend"; empty where it has none. Of text-to-text models by their family, and by the tasks that
  // their config names.
  std::string_view verb() const;
  // The end of a refusal: "use `multihead tag`", or that no verb runs the folder.
  std::string advice() const;
  // "bert text classifier".
  std::string description() const;
};

// `as`: the family where config.json has no model_type. Throws: io where the folder is not there, holds neither, or a
// file breaks its format; unsupported for a family, a class or a kind that is not known.
FolderFacts folder_facts(const std::string& folder, const std::string& as = {});

// A refusal of the folder: "'models/en-de': is a transformer text-to-text model; expected a text classifier: use
// `multihead translate`". Throws: as folder_facts.
std::string refusal_of_folder(const std::string& folder, std::string_view expected);

}  // namespace mh
