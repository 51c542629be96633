// The example, through the library's own attention, and the page around it.
#include "multihead/show/explain.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "multihead/ops/attention/attention.h"
#include "multihead/ops/products/matmul.h"
#include "multihead/show/page_parts.h"

namespace mh {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kTokens = 4, kWidth = 4, kHeads = 2, kHeadWidth = kWidth / kHeads;

// Small numbers with one digit, so that sums can be followed by hand.
const std::vector<float> kX{1, 0, 0.5F, -1, 0, 1, 1, 0.5F, 1, 1, -0.5F, 0, -1, 0.5F, 0, 1};
const std::vector<float> kQuery{1, 0, 0.5F, 0, 0, 1, 0, 0.5F, 1, 0, 1, 0, 0, -1, 0, 1};
const std::vector<float> kKey{0.5F, 1, 0, 0, 1, 0, 1, 0, 0, 0.5F, 1, 0, 0, 1, 0, 1};
const std::vector<float> kValue{1, 0, 0, 1, 0, 1, 0, 0, 0.5F, 0, 1, 0, 0, 0, 1, 0.5F};
const std::vector<float> kOut{1, 0, 0, 0.5F, 0, 1, 0, 0, 0, 0.5F, 1, 0, 0.5F, 0, 0, 1};

Json matrix(const Tensor& rows) {
  Json out = Json::array();
  for (int64_t i = 0; i < rows.size(0); ++i) {
    out.push_back(Json::array());
    for (int64_t j = 0; j < rows.size(1); ++j) out.back().push_back(std::round(rows.item({i, j}) * 1e6) / 1e6);
  }
  return out;
}

Tensor square(const std::vector<float>& values) { return tensor<float>(values, {kWidth, kWidth}); }

// (tokens, width) to (1, heads, tokens, head width).
Tensor heads_of(const Tensor& rows) {
  return rows.reshape({1, kTokens, kHeads, kHeadWidth}).transpose(1, 2).contiguous();
}

Json library_numbers(bool causal_mask) {
  const Tensor x = square(kX), q = heads_of(matmul(x, square(kQuery))), k = heads_of(matmul(x, square(kKey))),
               v = heads_of(matmul(x, square(kValue)));
  const AttentionOptions options{.mask = causal_mask ? causal() : Mask()};
  const AttentionResult result = attention(q, k, v, options);
  const Tensor weights = attention_weights(q, k, result.lse, options);
  const Tensor joined = result.o.transpose(1, 2).contiguous().reshape({kTokens, kWidth});
  Json each = Json::array();
  for (int64_t h = 0; h < kHeads; ++h) each.push_back(matrix(weights.select(0, 0).select(0, h)));
  return {{"weights", each}, {"joined", matrix(joined)}, {"output", matrix(matmul(joined, square(kOut)))}};
}

}  // namespace

std::string attention_explained_html() {
  const Json data{{"tokens", {"the", "dog", "sees", "it"}},
                  {"heads", kHeads},
                  {"x", matrix(square(kX))},
                  {"query", matrix(square(kQuery))},
                  {"key", matrix(square(kKey))},
                  {"value", matrix(square(kValue))},
                  {"out", matrix(square(kOut))},
                  {"library", {{"all", library_numbers(false)}, {"causal", library_numbers(true)}}}};
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Attention, number by "
      "number</title>\n<style>\n{}{}</style>\n</head>\n<body class=\"explain\">\n{}<script type=\"application/json\" "
      "id=\"data\">{}</script>\n<script>\n(() => {{\n\"use strict\";\n{}}})();\n</script>\n</body>\n</html>\n",
      detail::kPagePolicy, detail::kPageStyle, detail::kExplainStyle, detail::kExplainBody, data.dump(),
      detail::kExplainScript);
}

}  // namespace mh
