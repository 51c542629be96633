// Which cases there are: edges by hand, then combinations drawn by number.
#include "multihead/check/cases/cases.h"

#include <algorithm>
#include <array>

#include "multihead/base/random.h"

namespace mh {
namespace {

constexpr std::array<int64_t, 24> kLengths{1,  2,  3,  7,  8,  9,  15, 16,  17,  31,  32,  33,
                                           47, 48, 49, 63, 64, 65, 96, 127, 128, 129, 200, 257};
constexpr std::array<int64_t, 7> kLongLengths{255, 256, 300, 511, 513, 640, 1025};
constexpr std::array<int64_t, 33> kWidths{1,  2,  3,  5,  7,  8,   9,   15,  16,  17,  24,  31,  32,  33,  40,  48, 63,
                                          64, 65, 72, 80, 96, 100, 127, 128, 129, 160, 192, 256, 257, 320, 511, 512};
constexpr std::array<std::array<int64_t, 2>, 8> kHeads{
    {{1, 1}, {2, 2}, {2, 1}, {3, 3}, {4, 2}, {4, 1}, {6, 2}, {8, 1}}};
constexpr std::array<uint16_t, 24> kMasks{
    0,
    0,
    kMaskCausal,
    kMaskCausal,
    kMaskKeep,
    kMaskDrop,
    kMaskLengths,
    kMaskWindow,
    kMaskPrefix,
    kMaskDocuments,
    kMaskQueryDocuments,
    kMaskCausal | kMaskLengths,
    kMaskCausal | kMaskOffset,
    kMaskCausal | kMaskOffsets,
    kMaskCausal | kMaskWindow,
    kMaskWindow | kMaskLengths,
    kMaskWindow | kMaskOffsets,
    kMaskPrefix | kMaskLengths,
    kMaskPrefix | kMaskWindow,
    kMaskCausal | kMaskDocuments,
    kMaskKeep | kMaskDrop | kMaskLengths,
    kMaskCausal | kMaskKeep,
    kMaskQueryDocuments | kMaskWindow | kMaskOffset,
    kMaskCausal | kMaskLengths | kMaskKeep | kMaskOffsets,
};

template <class T, size_t n>
T pick(Random& random, const std::array<T, n>& from) {
  return from[random.below(n)];
}

// The naive reference of a case takes about this many multiply-adds, times seven.
int64_t work(const AttentionCase& c) { return c.B * c.H * c.Tq * c.Tk * (c.Dk + c.Dv); }

void draw_sizes(Random& random, AttentionCase& c) {
  // One case in 48 is large: several blocks of keys and rows; the others take about a millisecond.
  const int64_t budget = random.below(48) == 0 ? 40'000'000 : 1'200'000;
  do {
    c.B = 1 + random.below(3);
    const auto heads = pick(random, kHeads);
    c.H = heads[0];
    c.Hkv = heads[1];
    c.Tq = pick(random, kLengths);
    c.Tk = random.below(6) == 0 ? pick(random, kLongLengths) : pick(random, kLengths);
    if (random.below(3) == 0) c.Tq = std::min<int64_t>(c.Tk, 257);
    c.Dk = pick(random, kWidths);
    c.Dv = random.below(2) == 0 ? c.Dk : pick(random, kWidths);
  } while (work(c) > budget);
}

void draw_options(Random& random, AttentionCase& c) {
  c.layout = static_cast<CaseLayout>(random.below(4));
  c.masks = pick(random, kMasks);
  if (random.below(2) == 0) c.bias = static_cast<CaseBias>(random.below(12));
  if (random.below(2) == 0) c.similarity = static_cast<CaseSimilarity>(random.below(5));
  if (random.below(4) == 0) c.cap = random.below(2) == 0 ? 2.0F : 30.0F;
  if (random.below(4) == 0) c.dropout = std::array{0.1F, 0.5F, 0.9F, 1.0F}[random.below(4)];
  c.sink = random.below(4) == 0;
  c.packed = random.below(5) == 0;
  c.d_lse = random.below(3) != 0;
  c.zero_vectors = random.below(8) == 0;
  const bool dot = c.similarity == CaseSimilarity::dot || c.similarity == CaseSimilarity::dot_scaled;
  if (dot && c.cap == 0 && random.below(10) == 0) c.growth = random.below(2) == 0 ? 1e4F : -1e4F;
  if (random.below(16) == 0 && work(c) * c.Tk < 100'000'000) {
    const bool bounded = (c.masks & (kMaskCausal | kMaskPrefix | kMaskWindow)) != 0;
    c.mix = c.packed || bounded || random.below(2) == 0 ? CaseMix::heads : CaseMix::keys;
  }
}

std::vector<AttentionCase> edges() {
  std::vector<AttentionCase> out{
      {.B = 2, .H = 2, .Hkv = 2, .Tq = 3, .Tk = 0, .Dk = 8, .Dv = 4, .d_lse = true},
      {.B = 2, .H = 2, .Hkv = 1, .Tq = 3, .Tk = 0, .Dk = 8, .Dv = 4, .sink = true, .d_lse = true},
      {.B = 2, .H = 2, .Hkv = 2, .Tq = 0, .Tk = 5, .Dk = 8, .Dv = 4, .d_lse = true},
      {.B = 0, .H = 2, .Hkv = 2, .Tq = 4, .Tk = 5, .Dk = 8, .Dv = 4},
      {.B = 1, .H = 1, .Hkv = 1, .Tq = 1, .Tk = 1, .Dk = 1, .Dv = 1},
      {.B = 1, .H = 2, .Hkv = 1, .Tq = 5, .Tk = 1, .Dk = 16, .Dv = 16, .d_lse = true},
      {.B = 1, .H = 1, .Hkv = 1, .Tq = 9, .Tk = 17, .Dk = 512, .Dv = 512, .masks = kMaskCausal},
      {.B = 1, .H = 1, .Hkv = 1, .Tq = 9, .Tk = 17, .Dk = 512, .Dv = 1},
      {.B = 1, .H = 1, .Hkv = 1, .Tq = 9, .Tk = 17, .Dk = 1, .Dv = 512},
      {.B = 1, .H = 2, .Hkv = 2, .Tq = 40, .Tk = 8, .Dk = 32, .Dv = 32, .masks = kMaskCausal, .d_lse = true},
      {.B = 2, .H = 4, .Hkv = 2, .Tq = 20, .Tk = 20, .Dk = 64, .Dv = 64, .masks = kMaskCausal, .packed = true},
      {.B = 1, .H = 16, .Hkv = 2, .Tq = 1, .Tk = 1500, .Dk = 64, .Dv = 64},
      {.B = 1, .H = 1, .Hkv = 1, .Tq = 200, .Tk = 1100, .Dk = 64, .Dv = 64, .d_lse = true},
      {.B = 1, .H = 1, .Hkv = 1, .Tq = 600, .Tk = 600, .Dk = 48, .Dv = 80, .masks = kMaskCausal},
      {.B = 2, .H = 2, .Hkv = 1, .Tq = 1, .Tk = 20, .Dk = 64, .Dv = 64, .bias = CaseBias::alibi},
      // Decode in chunks of one block, and of two whose maxima differ little, so that the first one's sums still count.
      {.B = 1, .H = 2, .Hkv = 1, .Tq = 2, .Tk = 9000, .Dk = 8, .Dv = 5, .masks = kMaskCausal},
      {.B = 1, .H = 2, .Hkv = 1, .Tq = 1, .Tk = 140'000, .Dk = 3, .Dv = 4, .growth = 30},
  };
  const size_t count = out.size();
  for (DType dtype : {DType::bf16, DType::f16}) {
    for (size_t n = 0; n < count; ++n) {
      out.push_back(out[n]);
      out.back().dtype = dtype;
    }
  }
  for (size_t n = 0; n < out.size(); ++n) out[n].seed = 1'000'000 + n;
  return out;
}

void add(std::string& text, bool present, std::string_view word) {
  if (present) text.append(" ").append(word);
}

}  // namespace

std::string AttentionCase::label() const {
  constexpr std::array layouts{"bhtd", "bthd", "shared", "padded"};
  constexpr std::array biases{"",           "bias",  "bias(H,1,Tk)", "bias(Tk)",   "bias(B,1,Tq,1)", "bias(-inf)",
                              "bias(bf16)", "alibi", "t5",           "t5_one_way", "bias alibi",     "bias t5"};
  constexpr std::array similarities{"", "scaled", "cosine", "cosine(H)", "euclidean"};
  constexpr std::array mixes{"", "head_mix", "key_mix"};
  constexpr std::array mask_names{"keep",    "drop",   "lengths", "causal",    "offset",
                                  "offsets", "window", "prefix",  "documents", "query_documents"};
  std::string text = fmt::format("{} B{} H{}/{} Tq{} Tk{} Dk{} Dv{} {}", name(dtype), B, H, Hkv, Tq, Tk, Dk, Dv,
                                 layouts[static_cast<size_t>(layout)]);
  for (size_t bit = 0; bit < mask_names.size(); ++bit) add(text, (masks >> bit & 1) != 0, mask_names[bit]);
  add(text, bias != CaseBias::none, biases[static_cast<size_t>(bias)]);
  add(text, similarity != CaseSimilarity::dot, similarities[static_cast<size_t>(similarity)]);
  add(text, mix != CaseMix::none, mixes[static_cast<size_t>(mix)]);
  add(text, cap > 0, fmt::format("cap={}", cap));
  add(text, dropout > 0, fmt::format("dropout={}", dropout));
  add(text, growth != 0, fmt::format("growth={}", growth));
  add(text, sink, "sink");
  add(text, packed, "packed");
  add(text, d_lse, "d_lse");
  add(text, zero_vectors, "zero_vectors");
  return text + fmt::format(" seed={}", seed);
}

std::vector<AttentionCase> attention_cases(int64_t count) {
  std::vector<AttentionCase> out = edges();
  constexpr std::array types{DType::f32, DType::bf16, DType::f16};
  for (uint64_t n = 0; static_cast<int64_t>(out.size()) < count; ++n) {
    Random random(n, 3);
    AttentionCase c{.dtype = types[n % 3], .seed = n};
    draw_sizes(random, c);
    draw_options(random, c);
    out.push_back(c);
  }
  out.resize(static_cast<size_t>(count));
  return out;
}

}  // namespace mh
