// Pairs of texts and hypotheses through a classifier, and labels' probabilities from its logits.
#include "multihead/tasks/verbs/zero_shot.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/tasks/classify.h"
#include "multihead/tasks/verbs/text_encoder.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr int64_t kTokensOfPairs = 4096;
constexpr size_t kPairsAtOnce = 256;

// The first label that begins so, whatever its case; -1 where there is none.
int64_t label_with(const std::vector<std::string>& labels, std::string_view beginning) {
  const auto begins = [&](const std::string& label) {
    return label.size() >= beginning.size() &&
           std::equal(beginning.begin(), beginning.end(), label.begin(),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  };
  const auto at = std::find_if(labels.begin(), labels.end(), begins);
  return at == labels.end() ? -1 : at - labels.begin();
}

std::vector<std::string> hypotheses_of(std::span<const std::string> labels, const std::string& pattern) {
  const size_t gap = pattern.find("{}");
  check(gap != std::string::npos && pattern.find("{}", gap + 2) == std::string::npos,
        "zero-shot: the hypothesis is {}; expected one {{}} in it, for the label", printable(pattern));
  check(!labels.empty(), "zero-shot: there is no label; expected one or more");
  std::vector<std::string> out;
  for (const std::string& label : labels) {
    check(!label.empty(), "zero-shot: label {} is empty; expected some text", out.size() + 1);
    out.push_back(pattern.substr(0, gap) + label + pattern.substr(gap + 2));
    check(!utf8_error(out.back()), "zero-shot: label {} or the hypothesis is not UTF-8", out.size());
  }
  return out;
}

}  // namespace

struct ZeroShotClassifier::Parts {
  LabelledModel folder;
  DType compute;
  int64_t entailment = -1, contradiction = -1;

  void check_room(std::span<const std::string> hypotheses) const;
  Encoded pair(const std::string& text, const std::string& hypothesis, bool& cut) const;
  std::vector<std::vector<double>> logits(std::span<const Encoded> pairs) const;
  std::vector<double> probabilities(std::span<const std::vector<double>> logits, bool each) const;
};

void ZeroShotClassifier::Parts::check_room(std::span<const std::string> hypotheses) const {
  for (const std::string& each : hypotheses) {
    const auto taken = static_cast<int64_t>(folder.tokenizer.encode_pair("", each, {.find_special = false}).ids.size());
    check(taken < folder.max_length, "zero-shot: the hypothesis {} has {} tokens; expected fewer than {}",
          printable(each), taken, folder.max_length);
  }
}

Encoded ZeroShotClassifier::Parts::pair(const std::string& text, const std::string& hypothesis, bool& cut) const {
  EncodeOptions options{.find_special = false};
  Encoded out = folder.tokenizer.encode_pair(text, hypothesis, options);
  const bool longer = static_cast<int64_t>(out.ids.size()) > folder.max_length;
  options.max_length = folder.max_length;
  options.truncate = Truncate::only_first;
  if (longer) out = folder.tokenizer.encode_pair(text, hypothesis, options);
  cut = cut || longer;
  return out;
}

// The entailment's and the contradiction's of each pair.
std::vector<std::vector<double>> ZeroShotClassifier::Parts::logits(std::span<const Encoded> pairs) const {
  std::vector<std::vector<double>> out(pairs.size());
  in_batches(pairs, kTokensOfPairs, [&](std::span<const size_t> which) {
    std::vector<std::vector<int32_t>> ids;
    std::vector<int32_t> types;
    for (const size_t n : which) {
      ids.push_back(pairs[n].ids);
      types.insert(types.end(), pairs[n].types.begin(), pairs[n].types.end());
    }
    Pass pass = Pass::inference(compute);
    const Tensor of_types = tensor<int32_t>(types, {static_cast<int64_t>(types.size())});
    const Tensor all = folder.model.logits(token_batch(ids), of_types, pass).detach().contiguous();
    const float* row = all.data<float>();
    for (const size_t n : which) {
      out[n] = {row[entailment], contradiction < 0 ? 0 : row[contradiction]};
      row += all.size(1);
    }
  });
  return out;
}

// `each`: every label against its own contradiction.
std::vector<double> ZeroShotClassifier::Parts::probabilities(std::span<const std::vector<double>> logits,
                                                             bool each) const {
  std::vector<double> out;
  double top = -INFINITY, sum = 0;
  for (const std::vector<double>& x : logits) top = std::max(top, x[0]);
  for (const std::vector<double>& x : logits)
    sum += out.emplace_back(each ? 1 / (1 + std::exp(x[1] - x[0])) : std::exp(x[0] - top));
  for (double& p : out)
    if (!each) p /= sum;
  return out;
}

ZeroShotClassifier ZeroShotClassifier::load(const std::string& folder, DType compute) {
  auto parts = std::make_shared<Parts>(Parts{.folder = load_classifier(folder), .compute = compute});
  const std::vector<std::string>& labels = parts->folder.labels.names();
  parts->entailment = label_with(labels, "entail");
  parts->contradiction = label_with(labels, "contra");
  check(parts->entailment >= 0,
        "{}: no label of the model begins with \"entail\", the first is {}; zero-shot classification expects a model "
        "that tells what follows from a text",
        printable_path(folder), printable(labels.front()));
  const bool own = parts->folder.model.own() != nullptr;
  check(!own || parts->folder.model.is_pair_model(), "{}: reads single texts; expected a model of pairs",
        printable_path(folder));
  if (parts->contradiction < 0 && labels.size() == 2) parts->contradiction = 1 - parts->entailment;
  parts->folder.model.pack(compute);
  return ZeroShotClassifier(parts);
}

const std::vector<std::string>& ZeroShotClassifier::unused() const { return parts_->folder.model.unused(); }

Classification ZeroShotClassifier::operator()(std::string_view text, std::span<const std::string> labels,
                                              const ZeroShotOptions& options) const {
  const std::string one[] = {std::string(text)};
  return (*this)(one, labels, options).front();
}

std::vector<Classification> ZeroShotClassifier::operator()(std::span<const std::string> texts,
                                                           std::span<const std::string> labels,
                                                           const ZeroShotOptions& options) const {
  const std::vector<std::string> hypotheses = hypotheses_of(labels, options.hypothesis);
  parts_->check_room(hypotheses);
  const bool each = options.multi || labels.size() == 1;
  check(
      !each || parts_->contradiction >= 0,
      "zero-shot: no label of the model begins with \"contra\"; labels that do not exclude one another, or one alone, "
      "expect it");
  std::vector<Classification> out;
  for (size_t begin = 0; begin < texts.size();) {
    std::vector<Encoded> pairs;
    for (; out.size() < texts.size() && (pairs.empty() || pairs.size() + labels.size() <= kPairsAtOnce);) {
      const std::string& text = texts[out.size()];
      check(!utf8_error(text), "zero-shot: text {} is not UTF-8", out.size() + 1);
      bool cut = false;
      for (const std::string& hypothesis : hypotheses) pairs.push_back(parts_->pair(text, hypothesis, cut));
      out.push_back({.cut = cut});
    }
    const auto logits = parts_->logits(pairs);
    for (; begin < out.size(); ++begin) {
      const size_t first = logits.size() - (out.size() - begin) * labels.size();
      const auto p = parts_->probabilities(std::span(logits).subspan(first, labels.size()), each);
      const auto best = std::max_element(p.begin(), p.end());
      out[begin].label = labels[static_cast<size_t>(best - p.begin())];
      out[begin].score = static_cast<float>(*best);
      out[begin].scores.assign(p.begin(), p.end());
    }
  }
  return out;
}

}  // namespace mh
