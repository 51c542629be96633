// Rows to texts with labels, and those to ids.
#include "multihead/tasks/data/labelled_text.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/io/hash.h"
#include "multihead/tasks/data/hold_out.h"

namespace mh {

namespace {

constexpr int64_t kTextsPerTask = 256;

bool has_nothing(std::string_view text) { return text.find_first_not_of(" \t\r\v\f\n") == std::string_view::npos; }

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

}  // namespace

std::string LabelledTexts::where(size_t row) const { return fmt::format("{}:{}", name, rows[row].line); }

LabelledTexts LabelledTexts::hold_out(int64_t count) {
  std::vector<std::string_view> texts;
  for (const LabelledText& row : rows) texts.push_back(row.text);
  const std::vector<bool> goes = detail::held_out(texts, count, name, "texts");
  LabelledTexts out{.name = name};
  std::vector<LabelledText> kept;
  for (size_t n = 0; n < rows.size(); ++n) (goes[n] ? out.rows : kept).push_back(std::move(rows[n]));
  rows = std::move(kept);
  return out;
}

LabelledTexts read_labelled(const std::string& path, const DataConfig& data) {
  TableOptions options{
      .columns = {data.text, data.label}, .format = data.format, .header = data.header, .max_broken = data.max_broken};
  if (!data.pair.empty()) options.columns.push_back(data.pair);
  TableFile file(path, options);
  LabelledTexts out{.name = path};
  while (file.next()) {
    const std::vector<std::string>& fields = file.fields();
    const std::string_view label = trimmed(fields[1]);
    if (has_nothing(fields[0]) || (fields.size() > 2 && has_nothing(fields[2])))
      file.broken().skip(file.line(), "an empty text");
    else if (label.empty())
      file.broken().skip(file.line(), "no label");
    else
      out.rows.push_back({.text = fields[0],
                          .pair = fields.size() > 2 ? fields[2] : "",
                          .label = std::string(label),
                          .line = file.line()});
  }
  out.report = file.broken().sentences(file.rows());
  check(file.rows() > 0, "{}: empty; expected texts with labels", path);
  check(!out.rows.empty(), "{}: no text with a label is left; {}", path, fmt::join(out.report, "; "));
  return out;
}

Encoded encode_text(const Tokenizer& tokenizer, std::string_view text, std::string_view pair, int64_t max_length) {
  const EncodeOptions options{.find_special = false, .max_length = max_length};
  Encoded out = pair.empty() ? tokenizer.encode_input(text, options) : tokenizer.encode_pair(text, pair, options);
  if (out.ids.empty()) {
    out.ids = {tokenizer.id("[UNK]").value_or(tokenizer.id("<unk>").value_or(0))};
    out.types = {0};
  }
  return out;
}

EncodedTexts::EncodedTexts(const LabelledTexts& texts, const Tokenizer& tokenizer, int64_t max_length) {
  const auto count = static_cast<int64_t>(texts.rows.size());
  std::vector<Encoded> all(texts.rows.size());
  parallel_for((count + kTextsPerTask - 1) / kTextsPerTask, [&](int64_t task) {
    for (int64_t n = task * kTextsPerTask; n < std::min(count, (task + 1) * kTextsPerTask); ++n)
      all[static_cast<size_t>(n)] = encode_text(tokenizer, texts.rows[static_cast<size_t>(n)].text,
                                                texts.rows[static_cast<size_t>(n)].pair, max_length);
  });
  for (const Encoded& each : all) {
    ids_.insert(ids_.end(), each.ids.begin(), each.ids.end());
    types_.insert(types_.end(), each.types.begin(), each.types.end());
    starts_.push_back(static_cast<int64_t>(ids_.size()));
  }
}

int64_t EncodedTexts::longest() const {
  int64_t out = 0;
  for (int64_t n = 0; n < size(); ++n) out = std::max(out, static_cast<int64_t>(ids(n).size()));
  return out;
}

std::string EncodedTexts::digest() const {
  detail::Hash hash;
  hash.add(std::as_bytes(std::span(starts_)));
  hash.add(std::as_bytes(std::span(ids_)));
  return hash.digits();
}

}  // namespace mh
