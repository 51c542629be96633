// Runs the body over all tokens, and the head over those that are masks.
#include "multihead/tasks/verbs/filler.h"

#include <algorithm>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/models/pretrained/network.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/ops/shape.h"
#include "multihead/tasks/verbs/text_encoder.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr int64_t kTokensFilledAtOnce = 4096;
constexpr int64_t kGapsAtOnce = 256;

std::optional<int32_t> mask_of(const TextEncoder& encoder) {
  const int32_t named = encoder.model.architecture().tokens.mask;
  if (named >= 0 && named < encoder.tokenizer.size()) return named;
  for (const char* name : {"[MASK]", "<mask>"})
    if (const auto id = encoder.tokenizer.id(name)) return id;
  return std::nullopt;
}

// A token as it stands in a text: the sign of WordPiece's continuations is no part of it.
std::string text_of_token(const Tokenizer& tokenizer, int32_t id) {
  std::string out = tokenizer.is_special(id) ? tokenizer.token(id) : tokenizer.decode({id});
  if (out.empty()) out = tokenizer.token(id);
  return out;
}

// The text with a token instead of the gap; one that continues a word follows it directly.
std::string with_token(std::string_view text, const Gap& gap, const std::string& token) {
  std::string before(text.substr(0, gap.begin));
  const bool continues = token.size() > 2 && token.starts_with("##");
  if (continues) before.erase(before.find_last_not_of(' ') + 1);
  return before + (continues ? token.substr(2) : token) + std::string(text.substr(gap.end));
}

}  // namespace

struct Filler::Parts {
  TextEncoder encoder;
  int32_t mask;
};

Filler Filler::load(const std::string& folder, DType compute) {
  TextEncoder encoder = load_text_encoder(folder, HeadKind::masked_lm, compute);
  const std::optional<int32_t> mask = mask_of(encoder);
  check(mask.has_value(), "{}: its tokenizer has no mask; expected [MASK] or <mask>", printable_path(folder));
  return Filler(std::make_shared<Parts>(Parts{std::move(encoder), *mask}));
}

const std::string& Filler::mask() const { return parts_->encoder.tokenizer.token(parts_->mask); }

Filled Filler::operator()(std::string_view text, int64_t k) const {
  const std::string one[] = {std::string(text)};
  return (*this)(one, k).front();
}

std::vector<Filled> Filler::operator()(std::span<const std::string> texts, int64_t k) const {
  const TextEncoder& encoder = parts_->encoder;
  const Network& network = encoder.model.network();
  const int64_t known = std::min<int64_t>(encoder.tokenizer.size(), encoder.model.architecture().head.outputs);
  check(k >= 1 && k <= known, "Filler: k is {}; expected 1 to {}, the size of the vocabulary", k, known);
  std::vector<Filled> out(texts.size());
  std::vector<Encoded> encoded;
  for (size_t n = 0; n < texts.size(); ++n) {
    check(!utf8_error(texts[n]), "Filler: text {} is not UTF-8", n + 1);
    encoded.push_back(encode_whole(encoder.tokenizer, texts[n], encoder.longest, out[n].cut));
  }
  in_batches(encoded, kTokensFilledAtOnce, [&](std::span<const size_t> which) {
    const ModelInputs inputs = inputs_of(encoder.model.architecture(), encoded, which);
    std::vector<int32_t> places;
    std::vector<std::pair<size_t, size_t>> gaps;  // text, number of the gap
    int32_t row = 0;
    for (const size_t text : which) {
      for (size_t at = 0; at < encoded[text].ids.size(); ++at, ++row) {
        if (encoded[text].ids[at] != parts_->mask) continue;
        gaps.emplace_back(text, out[text].gaps.size());
        out[text].gaps.push_back({.begin = encoded[text].offsets[at].begin, .end = encoded[text].offsets[at].end});
        places.push_back(row);
      }
    }
    if (places.empty()) return;
    const Tensor rows = body_rows(encoder, inputs);
    Pass pass = Pass::inference(encoder.compute);
    for (size_t begin = 0; begin < places.size(); begin += kGapsAtOnce) {
      const size_t end = std::min(places.size(), begin + kGapsAtOnce);
      const std::vector<int32_t> some(places.begin() + static_cast<int64_t>(begin),
                                      places.begin() + static_cast<int64_t>(end));
      const Tensor p =
          softmax((*network.head)(gather(rows, tensor<int32_t>(some, {static_cast<int64_t>(some.size())})), pass));
      for (size_t n = begin; n < end; ++n) {
        const float* scores = p.data<float>() + static_cast<int64_t>(n - begin) * p.size(1);
        std::vector<int32_t> ids(static_cast<size_t>(known));
        for (size_t id = 0; id < ids.size(); ++id) ids[id] = static_cast<int32_t>(id);
        std::partial_sort(ids.begin(), ids.begin() + k, ids.end(),
                          [&](int32_t a, int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
        const auto [text, number] = gaps[n];
        Gap& gap = out[text].gaps[number];
        for (int64_t best = 0; best < k; ++best) {
          const int32_t id = ids[static_cast<size_t>(best)];
          const std::string token = text_of_token(encoder.tokenizer, id);
          gap.fillings.push_back(
              {.token = token, .id = id, .score = scores[id], .text = with_token(texts[text], gap, token)});
        }
      }
    }
  });
  return out;
}

}  // namespace mh
