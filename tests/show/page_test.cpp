// The page holds the weights it was given, to 8 bits, and nothing in it can run or load anything.
#include "multihead/show/page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/show/head_statistics.h"
#include "multihead/show/packed_layer.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

// Rows of sum 1, one of them sharp.
Tensor some_weights(int64_t heads, int64_t queries, int64_t keys) {
  const Tensor out = randn({heads, queries, keys}, 5);
  float* w = out.data<float>();
  for (int64_t row = 0; row < heads * queries; ++row) {
    float sum = 0;
    for (int64_t j = 0; j < keys; ++j) sum += w[row * keys + j] = std::exp(3 * w[row * keys + j]);
    for (int64_t j = 0; j < keys; ++j) w[row * keys + j] /= sum;
  }
  return out;
}

PageLayer layer_of(const Tensor& weights) {
  return {weights.size(0), [weights](int64_t begin, int64_t end) { return weights.slice(1, begin, end); }};
}

Page page_of_tokens(const std::vector<std::string>& tokens) {
  const auto n = static_cast<int64_t>(tokens.size());
  Page page{
      .title = "t", .subtitle = "", .texts = {{"text", tokens, std::vector<int64_t>(tokens.size(), -1)}}, .groups = {}};
  page.groups.push_back(
      {.name = "Encoder", .layers = {layer_of(some_weights(2, n, n)), layer_of(some_weights(2, n, n))}});
  return page;
}

nlohmann::json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(PackedLayer, BytesAreTheRootsOfTheWeights) {
  const Tensor weights = some_weights(3, 17, 33);
  const detail::PackedLayer packed = detail::pack_layer(layer_of(weights), 17, 33, {true, true, true});
  ASSERT_EQ(packed.bytes.size(), 3u * 17 * 33);
  for (size_t n = 0; n < packed.bytes.size(); ++n) {
    const double byte = packed.bytes[n], w = weights.data<float>()[n];
    // (b + ½)² - (b - ½)² = 2 b: half of that, of 255², is the most a weight is off.
    EXPECT_NEAR(byte * byte / (255.0 * 255.0), w, 1.0 / 255) << n;
  }
}

TEST(PackedLayer, StatisticsAreThoseOfTheRows) {
  const Tensor weights = tensor<float>({1, 0, 0, 0.5F, 0.5F, 0, 0, 0, 1}, {1, 3, 3});
  const HeadStatistics s = detail::pack_layer(layer_of(weights), 3, 3, {true}).heads[0].statistics;
  EXPECT_NEAR(s.entropy, std::log(2) / 3, 1e-9);
  EXPECT_NEAR(s.confidence, 2.5 / 3, 1e-9);
  EXPECT_NEAR(s.distance, 0.5 / 3, 1e-9);
  EXPECT_NEAR(s.previous, 0.5 / 3, 1e-9);
  EXPECT_NEAR(s.itself, 2.5 / 3, 1e-9);
  EXPECT_NEAR(s.next, 0, 1e-9);
  EXPECT_NEAR(s.first, 1.5 / 3, 1e-9);
  EXPECT_NEAR(s.last, 1.0 / 3, 1e-9);
}

TEST(PackedLayer, OfALongTextPicturesAndTheLargestOfEachRowAreKept) {
  const int64_t n = 200;
  const Tensor weights = some_weights(2, n, n);
  const detail::PackedLayer packed = detail::pack_layer(layer_of(weights), n, n, {false, true});
  ASSERT_EQ(packed.bytes.size(), static_cast<size_t>(64 * 64 + n * 16 * 5 + n * n));
  const unsigned char* keys = packed.bytes.data() + 64 * 64;
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = 0;
    for (int64_t j = 1; j < n; ++j)
      if (weights.item({0, i, j}) > weights.item({0, i, best})) best = j;
    EXPECT_EQ(keys[i * 64] | keys[i * 64 + 1] << 8, best);
    const int byte = packed.bytes[static_cast<size_t>(64 * 64 + n * 64 + i * 16)];
    EXPECT_EQ(byte, std::lround(255 * std::sqrt(weights.item({0, i, best}))));
    EXPECT_GE(packed.bytes[static_cast<size_t>(i * 64 / n * 64 + best * 64 / n)], byte);
  }
}

TEST(PackedLayer, NanAndNegativeWeightsCountAsNothing) {
  const Tensor weights = tensor<float>({NAN, -1, 2, 0}, {1, 2, 2});
  const detail::PackedLayer packed = detail::pack_layer(layer_of(weights), 2, 2, {true});
  EXPECT_EQ(packed.bytes, (std::vector<unsigned char>{0, 0, 255, 0}));
}

TEST(PackedLayer, Base64IsThatOfTheStandard) {
  EXPECT_EQ(detail::deflated_base64({}).size() % 4, 0u);
  for (size_t n = 1; n < 6; ++n) {
    const std::string text = detail::deflated_base64(std::vector<unsigned char>(n, 'x'));
    EXPECT_EQ(text.size() % 4, 0u);
    EXPECT_EQ(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
              std::string::npos);
  }
}

TEST(Page, HostileTextStaysText) {
  const std::vector<std::string> tokens{"</script><script>alert(1)</script>",
                                        "<!--",
                                        std::string("a\0b", 3),
                                        "\u202Eright to left",
                                        "\xFF\xFE not UTF-8",
                                        std::string(1 << 20, 'w'),
                                        "\u2028",
                                        ""};
  Page page = page_of_tokens(tokens);
  page.title = "</title><script>alert(2)</script>";
  page.groups[0].name = "</script><img src=x onerror=alert(3)>";
  const std::string harmless = page_html(page_of_tokens({"a"})), html = page_html(page);
  EXPECT_EQ(count(html, "<script"), count(harmless, "<script"));
  EXPECT_EQ(count(html, "</script"), count(harmless, "</script"));
  EXPECT_EQ(count(html, "<img"), 0u);
  EXPECT_LT(html.size(), 200'000u);
  const auto said = data_of(html)["texts"][0]["tokens"];
  ASSERT_EQ(said.size(), tokens.size());
  EXPECT_EQ(said[0], tokens[0]);
  EXPECT_EQ(said[2], tokens[2]);
  EXPECT_EQ(said[5].get<std::string>().size(), 1000 + std::string("…").size());
}

TEST(Page, PolicyForbidsEveryRequest) {
  const std::string html = page_html(page_of_tokens({"a", "b"}));
  EXPECT_NE(html.find("Content-Security-Policy\" content=\"default-src 'none'"), std::string::npos);
  for (const char* address : {"http:", "https:", "//cdn", "url(", "import "})
    EXPECT_EQ(count(html, address), address == std::string("http:") ? count(html, "http://www.w3.org/2000/svg") : 0u)
        << address;
}

TEST(Page, LongTextsKeepTheChosenHeadsWhole) {
  const auto data =
      data_of(page_html(page_of_tokens({"a", "b", "c"}), {.most_weights = 10, .chosen = chosen_heads("1.2,2.*")}));
  const auto whole = [&](int l, int h) { return data["groups"][0]["layers"][l][h]["whole"].get<bool>(); };
  EXPECT_FALSE(whole(0, 0));
  EXPECT_TRUE(whole(0, 1) && whole(1, 0) && whole(1, 1));
}

TEST(Page, WhatCannotBeShownIsRefusedInOneSentence) {
  EXPECT_TRUE(refusal_of([] { page_html({}); }).says("there is no layer of attention"));
  EXPECT_TRUE(refusal_of([] { page_html(page_of_tokens({})); }).says("0 tokens"));
  EXPECT_TRUE(refusal_of([] { page_html(page_of_tokens({"a"}), {.chosen = chosen_heads("3.1")}); }).says("layer 3"));
  EXPECT_TRUE(refusal_of([] { page_html(page_of_tokens({"a"}), {.chosen = chosen_heads("1.3")}); }).says("head 1.3"));
  for (const char* wrong :
       {"", "1", "1.", ".1", "0.1", "1.0", "1.2,", "a.b", "1.2;3", "-1.2", "99999999999999999999.1"})
    EXPECT_TRUE(refusal_of([&] { chosen_heads(wrong); }).says("is not a list of LAYER.HEAD")) << wrong;
  Page page = page_of_tokens({"a", "b"});
  page.groups[0].layers[0] = layer_of(some_weights(2, 2, 3));
  EXPECT_TRUE(refusal_of([&] { page_html(page); }).says("expected one matrix for each head"));
}

}  // namespace
}  // namespace mh
