// The lines of a file with their vectors, kept in an index beside it: what a search looks through.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tasks/verbs/embedder.h"

namespace mh {

struct FoundLine {
  float score = 0;
  int64_t number = 0;  // of the line, from 1
  std::string text{};
};

// Copies share everything; a search may be called from many threads at once.
class DocumentIndex {
 public:
  // Reads the vectors from `index`, a .npy file, where it was made of these documents by this model; else makes and
  // writes them. Lines that are blank or not UTF-8 are no documents. `tell`: hears, in a sentence, that the index is
  // made, that it could not be written, how many lines are not UTF-8. Throws: io where the documents cannot be read or
  // have no line of text; invalid_argument where `index` is another file; unsupported where the model compares by
  // something else than cosines or products.
  static DocumentIndex open(const Embedder& embedder, const std::string& documents, const std::string& index,
                            const std::function<void(const std::string& sentence)>& tell);

  // The k best lines for each query, the best first: every line is compared. Throws: as Embedder and nearest_vectors.
  std::vector<std::vector<FoundLine>> operator()(std::span<const std::string> queries, int64_t k) const;

 private:
  struct Parts;
  explicit DocumentIndex(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
