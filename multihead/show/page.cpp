// Puts the page together: its data as JSON, the weights in blocks, the parts that are the same on every page.
#include "multihead/show/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/show/packed_layer.h"
#include "multihead/show/page_parts.h"

namespace mh {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTokenBytes = 1000;
constexpr int64_t kMostRollout = 1024;

std::string cut_token(const std::string& token) {
  if (token.size() <= kMostTokenBytes) return token;
  size_t end = kMostTokenBytes;
  while (end > 0 && (static_cast<unsigned char>(token[end]) & 0xC0) == 0x80) --end;
  return token.substr(0, end) + "…";
}

// JSON that may stand in a <script>: no "<" begins a tag.
std::string harmless(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string out;
  for (const char each : text) {
    if (each == '<') {
      out += "\\u003c";
    } else {
      out += each;
    }
  }
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char each : text) {
    switch (each) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += static_cast<unsigned char>(each) < 0x20 ? ' ' : each;
    }
  }
  return out;
}

double rounded(double value) { return std::round(value * 1e5) / 1e5; }

Json head_json(const detail::PackedHead& head) {
  const HeadStatistics& s = head.statistics;
  return {{"whole", head.whole},
          {"statistics",
           {rounded(s.entropy), rounded(s.confidence), rounded(s.distance), rounded(s.previous), rounded(s.itself),
            rounded(s.next), rounded(s.first), rounded(s.last)}}};
}

int64_t length(const Page& page, size_t text) { return static_cast<int64_t>(page.texts[text].tokens.size()); }

void check_page(const Page& page) {
  check(!page.groups.empty(), "page: there is no layer of attention to show; expected one or more");
  for (const RecordedText& text : page.texts)
    check(text.tokens.size() == text.words.size(),
          "page: text '{}' has {} tokens and words of {}; expected the same number", text.name, text.tokens.size(),
          text.words.size());
  for (const PageGroup& group : page.groups) {
    check(group.queries < page.texts.size() && group.keys < page.texts.size() && !group.layers.empty(),
          "page: group '{}' has {} layers over texts {} and {} of {}; expected one layer or more, and texts that exist",
          group.name, group.layers.size(), group.queries, group.keys, page.texts.size());
    check(length(page, group.queries) > 0 && length(page, group.keys) > 0,
          "page: a text of 0 tokens; expected one or more");
  }
}

int64_t weights_in(const Page& page) {
  int64_t sum = 0;
  for (const PageGroup& group : page.groups)
    for (const PageLayer& layer : group.layers)
      sum += layer.heads * length(page, group.queries) * length(page, group.keys);
  return sum;
}

// Of each head of a layer whether all of it is stored.
std::vector<bool> stored_whole(const PageLayer& layer, int64_t number, bool all,
                               const std::vector<ChosenHead>& chosen) {
  std::vector<bool> whole(static_cast<size_t>(layer.heads), all);
  for (const ChosenHead& each : chosen) {
    if (each.layer != number) continue;
    check(each.head < layer.heads, "page: head {}.{} does not exist; a layer has {} heads", each.layer + 1,
          each.head + 1, layer.heads);
    if (each.head < 0) {
      std::fill(whole.begin(), whole.end(), true);
    } else {
      whole[static_cast<size_t>(each.head)] = true;
    }
  }
  return whole;
}

int64_t parsed_number(std::string_view text, const std::string& all) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && end == text.data() + text.size() && value > 0,
        "heads: '{}' is not a list of LAYER.HEAD; expected numbers from 1, as in 5.3,7.*", all);
  return value;
}

PageGroup group_of(const std::vector<const RecordedLayer*>& layers, PageGroup group) {
  for (const RecordedLayer* layer : layers) {
    group.layers.push_back({layer->heads(), [layer](int64_t begin, int64_t end) {
                              std::vector<int32_t> rows(static_cast<size_t>(end - begin));
                              std::iota(rows.begin(), rows.end(), static_cast<int32_t>(begin));
                              return layer->weights({}, rows);
                            }});
  }
  return group;
}

void add_self(Page& page, const Recording& recording, AttentionKind kind, size_t text) {
  const auto layers = recording.of(kind);
  if (layers.empty()) return;
  const std::string name = kind == AttentionKind::encoder ? "Encoder" : "Decoder";
  const std::string about = kind == AttentionKind::encoder
                                ? "Self-attention: every token reads the whole text."
                                : "Self-attention: every token reads itself and the tokens before it.";
  page.groups.push_back(group_of(layers, {.name = name, .about = about, .queries = text, .keys = text}));
}

void add_rollout(Page& page, const Recording& recording, AttentionKind kind, size_t text) {
  if (recording.of(kind).empty() || length(page, text) > kMostRollout) return;
  const Tensor rollout = recording.rollout(kind);
  PageGroup group{.name = kind == AttentionKind::encoder ? "Rollout" : "Decoder rollout",
                  .about =
                      "How much of each token of the input is in a token after a layer: the layers' mean attention "
                      "multiplied, half of it for the residual stream (Abnar and Zuidema, 2020).",
                  .queries = text,
                  .keys = text,
                  .head_word = "after layer"};
  group.layers.push_back(
      {rollout.size(0), [rollout](int64_t begin, int64_t end) { return rollout.slice(1, begin, end); }});
  page.groups.push_back(std::move(group));
}

}  // namespace

std::vector<ChosenHead> chosen_heads(const std::string& text) {
  std::vector<ChosenHead> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view each = std::string_view(text).substr(begin, end - begin);
    const size_t dot = each.find('.');
    check(dot != std::string_view::npos,
          "heads: '{}' is not a list of LAYER.HEAD; expected numbers from 1, as in 5.3,7.*", text);
    const std::string_view head = each.substr(dot + 1);
    out.push_back({parsed_number(each.substr(0, dot), text) - 1, head == "*" ? -1 : parsed_number(head, text) - 1});
    begin = end + 1;
  }
  return out;
}

Page page_of(const Recording& recording, const std::string& title, const std::string& subtitle) {
  Page page{.title = title, .subtitle = subtitle, .texts = recording.texts, .groups = {}};
  const bool two = recording.texts.size() > 1;
  const auto cross = recording.of(AttentionKind::cross);
  if (!cross.empty()) {
    page.groups.push_back(group_of(cross, {.name = "Cross-attention",
                                           .about = "What the decoder read of the source when it wrote a token.",
                                           .queries = 2,
                                           .keys = 0}));
  }
  add_self(page, recording, AttentionKind::encoder, 0);
  add_self(page, recording, AttentionKind::decoder, two ? 1 : 0);
  add_rollout(page, recording, AttentionKind::encoder, 0);
  add_rollout(page, recording, AttentionKind::decoder, two ? 1 : 0);
  return page;
}

std::string page_html(const Page& page, const PageOptions& options) {
  check_page(page);
  const bool all = weights_in(page) <= options.most_weights;
  int64_t deepest = 0;
  for (const PageGroup& group : page.groups) deepest = std::max(deepest, static_cast<int64_t>(group.layers.size()));
  for (const ChosenHead& each : options.chosen)
    check(each.layer < deepest, "page: layer {} does not exist; the model has {}", each.layer + 1, deepest);

  Json data{{"title", page.title}, {"subtitle", page.subtitle}, {"texts", Json::array()}, {"groups", Json::array()}};
  for (const RecordedText& text : page.texts) {
    Json tokens = Json::array();
    for (const std::string& token : text.tokens) tokens.push_back(cut_token(token));
    data["texts"].push_back({{"name", text.name}, {"tokens", std::move(tokens)}, {"words", text.words}});
  }
  std::string blocks;
  for (size_t g = 0; g < page.groups.size(); ++g) {
    const PageGroup& group = page.groups[g];
    Json layers = Json::array();
    for (size_t l = 0; l < group.layers.size(); ++l) {
      const PageLayer& layer = group.layers[l];
      const detail::PackedLayer packed =
          detail::pack_layer(layer, length(page, group.queries), length(page, group.keys),
                             stored_whole(layer, static_cast<int64_t>(l), all, options.chosen));
      layers.push_back(Json::array());
      for (const detail::PackedHead& head : packed.heads) layers.back().push_back(head_json(head));
      blocks += fmt::format("<script type=\"text/plain\" id=\"block-{}-{}\">{}</script>\n", g, l,
                            detail::deflated_base64(packed.bytes));
    }
    data["groups"].push_back({{"name", group.name},
                              {"about", group.about},
                              {"queries", group.queries},
                              {"keys", group.keys},
                              {"head_word", group.head_word},
                              {"layers", std::move(layers)}});
  }
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{}",
      detail::kPagePolicy, escaped(page.title.empty() ? "Attention" : page.title), detail::kPageStyle,
      detail::kPageBody);
  out += "<script type=\"application/json\" id=\"data\">" + harmless(data) + "</script>\n" + blocks + "<script>\n";
  out += "(() => {\n\"use strict\";\n";
  for (const std::string_view script : detail::kPageScripts) out += script;
  return out + "})();\n</script>\n</body>\n</html>\n";
}

}  // namespace mh
