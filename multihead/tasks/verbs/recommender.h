// A recommender in a folder: what users had in, what they may want next out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/dtype.h"

namespace mh {

struct Recommendation {
  std::string item{};
  float score = 0;  // its probability, among all items that may be recommended
};

struct RecommendOptions {
  int64_t count = 10;  // items, the most probable first; fewer where there are no more
  bool seen = false;   // whether items of the history may come again
};

// Copies share the model; every method may be called from many threads at once.
class Recommender {
 public:
  // Reads FOLDER/model.safetensors and FOLDER/tokenizer.json, as task.kind = "recommend" makes them. Throws: io,
  // invalid_argument; a sentence that names the file.
  static Recommender load(const std::string& folder, DType compute = DType::f32);

  // Of one history, the oldest item first, or of many. Items that the model does not know are passed over; an empty
  // history has what users begin with. Throws: invalid_argument for a count below 1.
  std::vector<Recommendation> operator()(std::span<const std::string> history,
                                         const RecommendOptions& options = {}) const;
  std::vector<std::vector<Recommendation>> operator()(std::span<const std::vector<std::string>> histories,
                                                      const RecommendOptions& options = {}) const;

  bool knows(std::string_view item) const;
  int64_t items() const;

 private:
  struct Parts;
  explicit Recommender(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
