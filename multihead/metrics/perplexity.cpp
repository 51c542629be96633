// How well a language model predicts a text.
#include "multihead/metrics/perplexity.h"

#include <cmath>
#include <numbers>

#include "multihead/base/error.h"

namespace mh {

double perplexity(double nats, int64_t count) {
  check(count >= 1, "perplexity: a text of {} tokens or words; expected at least 1", count);
  return std::exp(nats / static_cast<double>(count));
}

double bits_per_byte(double nats, int64_t bytes) {
  check(bytes >= 1, "bits_per_byte: a text of {} bytes; expected at least 1", bytes);
  return nats / (static_cast<double>(bytes) * std::numbers::ln2);
}

}  // namespace mh
