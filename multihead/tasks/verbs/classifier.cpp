// Texts through a classifier, a few thousand tokens at a time.
#include "multihead/tasks/verbs/classifier.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/ops/rows/activation.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/tasks/classify.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

enum class Scoring { softmax, sigmoid, none };

namespace {

constexpr int64_t kTokensAtOnce = 4096;

// As transformers' pipeline and sentence-transformers' cross-encoders score.
Scoring scoring_of(const TextModel& model) {
  const LabelKind labels = model.labels();
  if (model.pretrained() == nullptr)
    return labels == LabelKind::one       ? Scoring::softmax
           : labels == LabelKind::several ? Scoring::sigmoid
                                          : Scoring::none;
  const Architecture& a = model.pretrained()->architecture();
  const auto config = nlohmann::json::parse(a.config, nullptr, false);
  if (config.is_object() && config.contains("sentence_transformers") && config["sentence_transformers"].is_object()) {
    const auto& named = config["sentence_transformers"].value("activation_fn", nlohmann::json());
    const std::string name = named.is_string() ? named.get<std::string>() : "";
    if (name.ends_with("Identity")) return Scoring::none;
    if (name.ends_with("Sigmoid")) return Scoring::sigmoid;
  }
  if (labels == LabelKind::number) return Scoring::none;
  const bool alone = labels == LabelKind::several || model.classes() == 1;
  return alone ? Scoring::sigmoid : Scoring::softmax;
}

Tensor scores_of_logits(const Tensor& logits, Scoring scoring) {
  if (scoring == Scoring::none) return logits;
  return scoring == Scoring::softmax ? softmax(logits) : activation(logits, Activation::sigmoid);
}

}  // namespace

struct Classifier::Parts {
  LabelledModel folder;
  DType compute;
  Scoring scoring = Scoring::softmax;
};

Classifier Classifier::load(const std::string& folder, DType compute) {
  auto parts = std::make_shared<Parts>(Parts{.folder = load_classifier(folder), .compute = compute});
  parts->folder.model.pack(compute);
  parts->scoring = scoring_of(parts->folder.model);
  return Classifier(parts);
}

const std::vector<std::string>& Classifier::labels() const { return parts_->folder.labels.names(); }

bool Classifier::reads_pairs() const { return parts_->folder.model.is_pair_model(); }

const std::vector<std::string>& Classifier::unused() const { return parts_->folder.model.unused(); }

Classification Classifier::operator()(std::string_view text) const {
  const std::string one[] = {std::string(text)};
  return (*this)(one).front();
}

std::vector<Classification> Classifier::operator()(std::span<const std::string> texts) const {
  const TextModel& model = parts_->folder.model;
  const int64_t longest = parts_->folder.max_length;
  std::vector<Classification> out;
  for (size_t begin = 0; begin < texts.size();) {
    std::vector<std::vector<int32_t>> ids;
    std::vector<int32_t> types;
    size_t n = begin;
    for (int64_t filled = 0; n < texts.size() && filled < kTokensAtOnce; ++n) {
      const std::string_view text = texts[n];
      check(!utf8_error(text), "Classifier: text {} is not UTF-8", n + 1);
      const size_t tab = text.find('\t');
      check(!reads_pairs() || tab != std::string_view::npos,
            "Classifier: text {} is not a pair; expected two texts with a tab between them", n + 1);
      const std::string_view pair = tab == std::string_view::npos ? std::string_view() : text.substr(tab + 1);
      Encoded whole = encode_text(parts_->folder.tokenizer, text.substr(0, tab), pair, 0);
      const bool cut = static_cast<int64_t>(whole.ids.size()) > longest;
      if (cut) whole = encode_text(parts_->folder.tokenizer, text.substr(0, tab), pair, longest);
      filled += static_cast<int64_t>(whole.ids.size());
      types.insert(types.end(), whole.types.begin(), whole.types.end());
      ids.push_back(std::move(whole.ids));
      out.push_back({.cut = cut});
    }
    Pass pass = Pass::inference(parts_->compute);
    const auto rows = static_cast<int64_t>(types.size());
    const Tensor p =
        scores_of_logits(model.logits(token_batch(ids), tensor<int32_t>(types, {rows}), pass), parts_->scoring);
    for (size_t row = 0; row < ids.size(); ++row) {
      const float* scores = p.data<float>() + static_cast<int64_t>(row) * p.size(1);
      Classification& one = out[begin + row];
      one.scores.assign(scores, scores + p.size(1));
      const auto best = std::max_element(one.scores.begin(), one.scores.end());
      one.score = *best;
      one.label = labels()[static_cast<size_t>(best - one.scores.begin())];
    }
    begin = n;
  }
  return out;
}

}  // namespace mh
