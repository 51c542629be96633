// A masked language model in a folder: texts with gaps in, the likeliest tokens for each gap out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/dtype.h"

namespace mh {

struct Filling {
  std::string token{};  // as text: "capital"
  int32_t id = 0;
  float score = 0;     // its probability
  std::string text{};  // the whole text with this token in the gap, other gaps left
};

struct Gap {
  size_t begin = 0, end = 0;        // bytes of the text that the mask takes
  std::vector<Filling> fillings{};  // the likeliest first
};

struct Filled {
  std::vector<Gap> gaps{};  // in the order of the text, each filled as if the others stayed masks
  bool cut = false;         // the text was longer than the model reads: gaps past its end are not among these
};

// Copies share the model; every method may be called from many threads at once.
class Filler {
 public:
  // A Hugging Face folder with a masked language model. Throws: io, invalid_argument, unsupported; a sentence that
  // names the file, or the verb that the folder is for.
  static Filler load(const std::string& folder, DType compute = DType::f32);

  // The k likeliest tokens of each gap. Throws: invalid_argument for a text that is not UTF-8, and unless 1 <= k <= the
  // vocabulary. A text without a mask gives no gaps.
  Filled operator()(std::string_view text, int64_t k = 5) const;
  std::vector<Filled> operator()(std::span<const std::string> texts, int64_t k = 5) const;

  const std::string& mask() const;  // how a gap is written: "[MASK]", "<mask>"

 private:
  struct Parts;
  explicit Filler(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace mh
