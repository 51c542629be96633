// What users had, one item after the other: rows of user, item and time, brought into their order; and the items as a
// vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/tasks/task_setup.h"
#include "multihead/text/tokenizer.h"

namespace mh {

struct History {
  std::string user{};
  std::vector<int32_t> items{};  // numbers in Histories::items, by time, equals as they stand in the file
};

struct Histories {
  std::string name{};
  std::vector<std::string> items{};   // in the order in which the file has them first
  std::vector<History> users{};       // likewise
  std::vector<std::string> report{};  // a sentence for every rule that skipped something

  int64_t events() const;
};

struct HistoryOptions {
  size_t shortest = 2;                    // users with fewer items are left out, and said
  const Tokenizer* vocabulary = nullptr;  // items that are not in it are skipped, and said
};

// The columns of data.user, data.item and data.time; without a time rows stand in their order. A row is broken where a
// column is missing, the time is no number or the item has the name of a special token. Throws: as TableFile;
// invalid_argument where the file is empty or no user is left.
Histories read_histories(const std::string& path, const DataConfig& data, const HistoryOptions& options = {});

// The special tokens "<pad>", "<s>", "</s>", "<unk>", then all items, the most frequent first, equals by their bytes. A
// text is items with tabs between them.
Tokenizer item_tokenizer(const Histories& histories);

// The ids of each user's items. Throws: internal where the tokenizer lacks one.
std::vector<std::vector<int32_t>> item_ids(const Histories& histories, const Tokenizer& tokenizer);

// The id of the first item: those before it are special tokens.
int32_t first_item(const Tokenizer& tokenizer);

}  // namespace mh
