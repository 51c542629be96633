// What bert and its kin share: keys of the config, names of tensors, and heads.
#pragma once

#include <string>
#include <vector>

#include "multihead/models/pretrained/families.h"

namespace mh::detail {

// Sets bert's defaults where reading.
void begin_bert(ConfigFields& fields, Architecture& a);
// The keys of sizes, dropouts, activation and norm. The table of positions is said with its offset.
void bert_keys(ConfigFields& fields, Architecture& a);
// Once all keys are read: what follows from them.
void settle_bert(Architecture& a);

// The names of one family's modules in a layer, and of its embeddings; "" where it has none of that.
struct BertNames {
  std::string layer = "encoder.layer.{}.";
  std::string query = "attention.self.query", key = "attention.self.key", value = "attention.self.value";
  std::string out = "attention.output.dense", norm1 = "attention.output.LayerNorm";
  std::string linear1 = "intermediate.dense", linear2 = "output.dense", norm2 = "output.LayerNorm";
};
std::vector<TensorName> bert_names(const BertNames& names);
inline std::vector<TensorName> bert_names() { return bert_names(BertNames{}); }
void append(std::vector<TensorName>& rows, const std::vector<TensorName>& more);

// A matrix of labels after dropout, two outputs for a question, one for a choice.
HeadPlan labels_head(const Architecture& a, HeadRows rows);
// The same after a dense matrix with an activation.
HeadPlan dense_head(const Architecture& a, HeadRows rows, Activation activation);
// Dense to the embedding's width, activation, norm, and the tokens' matrix.
HeadPlan masked_head(const Architecture& a, Activation activation);

// roberta's: the table's first rows are left to padding. Reads pad_token_id first.
void offset_positions(ConfigFields& fields, Architecture& a);
// roberta's heads and their names, which mpnet's are too.
void roberta_head(Architecture& a);
std::vector<TensorName> roberta_head_names(const Architecture& a);

}  // namespace mh::detail
