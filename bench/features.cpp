// The options of attention whose cost is measured, each with the pairs it keeps.
#include <algorithm>

#include "bench/cases.h"

namespace mh::bench {
namespace {

constexpr int64_t kWindow = 256, kDocuments = 8;

double all_pairs(const Sizes& s) {
  return static_cast<double>(s.B) * static_cast<double>(s.Tq) * static_cast<double>(s.Tk);
}
double half_pairs(const Sizes& s) { return all_pairs(s) / 2; }

int64_t kept_length(const Sizes& s) { return s.Tk * 2 / 3; }
double length_pairs(const Sizes& s) {
  return all_pairs(s) * static_cast<double>(kept_length(s)) / static_cast<double>(s.Tk);
}

double window_pairs(const Sizes& s) {
  double sum = 0;
  for (int64_t i = 0; i < s.Tq; ++i) sum += static_cast<double>(std::min(kWindow, s.Tk - s.Tq + i + 1));
  return sum * static_cast<double>(s.B);
}

double document_pairs(const Sizes& s) { return all_pairs(s) / static_cast<double>(kDocuments); }

constexpr int64_t kTile = 64;
int64_t tiles_up(int64_t n) { return (n + kTile - 1) / kTile * kTile; }

double length_tiles(const Sizes& s) {
  return static_cast<double>(s.B) * static_cast<double>(s.Tq) *
         static_cast<double>(std::min(tiles_up(kept_length(s)), s.Tk));
}

double window_tiles(const Sizes& s) {
  double sum = 0;
  for (int64_t i = 0; i < s.Tq; i += kTile) {
    const int64_t rows = std::min(kTile, s.Tq - i), position = s.Tk - s.Tq + i;
    const int64_t first = std::max<int64_t>(0, position - kWindow + 1) / kTile * kTile;
    sum += static_cast<double>(rows) * static_cast<double>(std::min(tiles_up(position + rows), s.Tk) - first);
  }
  return sum * static_cast<double>(s.B);
}

AttentionOptions with_mask(Mask mask) {
  AttentionOptions options;
  options.mask = std::move(mask);
  return options;
}

AttentionOptions with_bias(Bias bias) {
  AttentionOptions options;
  options.bias.push_back(std::move(bias));
  return options;
}

// Keeps nine pairs of ten, none of its tiles empty or full.
AttentionOptions dense_mask(const Sizes& s, DType) {
  const Tensor where = empty({s.B, 1, s.Tq, s.Tk}, DType::boolean);
  bool* at = where.data<bool>();
  uint32_t state = 1;
  for (int64_t i = 0; i < where.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    at[i] = state >> 16 > 6554;
  }
  return with_mask(keep(where));
}

AttentionOptions key_lengths(const Sizes& s, DType) {
  return with_mask(
      lengths(tensor(std::vector<int32_t>(static_cast<size_t>(s.B), static_cast<int32_t>(kept_length(s))), {s.B})));
}

AttentionOptions document_ids(const Sizes& s, DType) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < s.B * s.Tk; ++i) ids.push_back(static_cast<int32_t>(i % s.Tk * kDocuments / s.Tk));
  return with_mask(documents(tensor(ids, {s.B, s.Tk})));
}

AttentionOptions dense_bias(const Sizes& s, DType dtype) {
  return with_bias(DenseBias{randn({1, s.H, s.Tq, s.Tk}, 11, dtype)});
}

AttentionOptions alibi(const Sizes& s, DType) {
  std::vector<float> slopes;
  for (int64_t h = 0; h < s.H; ++h) slopes.push_back(1.0f / static_cast<float>(int64_t{2} << h));
  return with_bias(AlibiBias{tensor(slopes, {s.H})});
}

AttentionOptions t5(const Sizes& s, DType) { return with_bias(T5Bias{.table = randn({32, s.H}, 12)}); }

AttentionOptions dropout(const Sizes&, DType) {
  AttentionOptions options;
  options.dropout = {.p = 0.1f, .seed = 7};
  return options;
}

AttentionOptions softcap(const Sizes&, DType) {
  AttentionOptions options;
  options.cap = 20;
  return options;
}

AttentionOptions cosine(const Sizes&, DType) {
  AttentionOptions options;
  options.similarity = CosineSimilarity{.tau = 10, .taus = {}};
  return options;
}

AttentionOptions euclidean(const Sizes&, DType) {
  AttentionOptions options;
  options.similarity = EuclideanSimilarity{};
  return options;
}

AttentionOptions sink(const Sizes& s, DType) {
  AttentionOptions options;
  options.sink = randn({s.H}, 13);
  return options;
}

std::vector<Feature> make_features() {
  return {
      {"plain", "none", [](const Sizes&, DType) { return AttentionOptions{}; }, all_pairs, all_pairs},
      {"causal", "causal", [](const Sizes&, DType) { return with_mask(causal()); }, half_pairs, half_pairs},
      {"dense_mask", "dense", dense_mask, all_pairs, all_pairs},
      {"key_lengths", "lengths", key_lengths, length_pairs, length_tiles},
      {"window_256", "window", [](const Sizes&, DType) { return with_mask(window(kWindow - 1, 0)); }, window_pairs,
       window_tiles},
      {"documents_8", "documents", document_ids, document_pairs, document_pairs},
      {"dense_bias", "none", dense_bias, all_pairs, all_pairs},
      {"alibi", "none", alibi, all_pairs, all_pairs},
      {"t5", "none", t5, all_pairs, all_pairs},
      {"dropout_0.1", "none", dropout, all_pairs, all_pairs},
      {"softcap", "none", softcap, all_pairs, all_pairs},
      {"cosine", "none", cosine, all_pairs, all_pairs},
      {"euclidean", "none", euclidean, all_pairs, all_pairs},
      {"sink", "none", sink, all_pairs, all_pairs},
  };
}

}  // namespace

const std::vector<Feature>& features() {
  static const std::vector<Feature> all = make_features();
  return all;
}

const Feature& feature(std::string_view name) {
  for (const Feature& each : features())
    if (each.name == name) return each;
  fail(ErrorKind::internal, "bench: there is no feature '{}'", name);
}

}  // namespace mh::bench
