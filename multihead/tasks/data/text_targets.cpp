// Cells of a table to what is right.
#include "multihead/tasks/data/text_targets.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/ops/elementwise.h"
#include "multihead/tasks/losses.h"

namespace mh {

namespace {

std::vector<std::string> split_labels(std::string_view cell, const std::string& separator) {
  std::vector<std::string> out;
  while (true) {
    const size_t end = cell.find(separator);
    std::string_view part = cell.substr(0, end);
    part.remove_prefix(std::min(part.find_first_not_of(" \t"), part.size()));
    part = part.substr(0, part.find_last_not_of(" \t") + 1);
    if (!part.empty()) out.emplace_back(part);
    if (end == std::string_view::npos) return out;
    cell.remove_prefix(end + separator.size());
  }
}

float number_in(const std::string& cell, const std::string& where) {
  float out = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  check(error == std::errc() && end == cell.data() + cell.size() && std::isfinite(out),
        "{}: the label {} is no number; expected one such as 3.5", where, printable(cell));
  return out;
}

}  // namespace

TextTargets TextTargets::of(std::span<const int64_t> texts) const {
  TextTargets out{.kind = kind, .width = width};
  for (const int64_t n : texts) {
    if (kind == LabelKind::one)
      out.classes.push_back(classes[static_cast<size_t>(n)]);
    else
      out.values.insert(out.values.end(), values.begin() + n * width, values.begin() + (n + 1) * width);
  }
  return out;
}

Tensor TextTargets::table() const { return tensor<float>(values, {size(), width}); }

Labels labels_of(const LabelledTexts& texts, const LabelReading& reading) {
  if (reading.kind == LabelKind::number) return Labels({"LABEL_0"});
  std::vector<std::string> names;
  for (const LabelledText& row : texts.rows) {
    if (reading.kind == LabelKind::one)
      names.push_back(row.label);
    else
      for (std::string& each : split_labels(row.label, reading.separator)) names.push_back(std::move(each));
  }
  check(!names.empty(), "{}: no row has a label; expected one label or more", texts.name);
  Labels out(std::move(names));
  check(out.size() >= 2 || reading.kind != LabelKind::one,
        "{}: every row has the label '{}'; expected two labels or more", texts.name, out.name(0));
  return out;
}

TextTargets targets_of(const LabelledTexts& texts, const Labels& labels, const LabelReading& reading) {
  TextTargets out{.kind = reading.kind};
  if (reading.kind == LabelKind::several) out.width = labels.size();
  for (size_t n = 0; n < texts.rows.size(); ++n) {
    const std::string &cell = texts.rows[n].label, where = texts.where(n);
    if (reading.kind == LabelKind::one) out.classes.push_back(labels.require(cell, where));
    if (reading.kind == LabelKind::number) out.values.push_back(number_in(cell, where));
    if (reading.kind != LabelKind::several) continue;
    const size_t row = out.values.size();
    out.values.resize(row + static_cast<size_t>(out.width));
    for (const std::string& each : split_labels(cell, reading.separator))
      out.values[row + static_cast<size_t>(labels.require(each, where))] = 1;
  }
  return out;
}

CrossEntropy target_loss(const Tensor& logits, const TextTargets& right, float smoothing) {
  const Tensor table = right.table();
  const bool several = right.kind == LabelKind::several;
  const Tensor loss = several ? binary_cross_entropy(logits, table, smoothing) : squared_error(logits, table);
  const Tensor plain = several ? binary_cross_entropy(logits.detach(), table) : loss.detach();
  return {.loss = loss, .nll = scale(plain, static_cast<float>(right.size())), .counted = right.size()};
}

}  // namespace mh
