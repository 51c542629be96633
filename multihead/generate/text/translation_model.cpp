// The two kinds of models that translate, behind one face.
#include "multihead/generate/text/translation_model.h"

#include <filesystem>

#include "multihead/base/printable.h"
#include "multihead/generate/models/model_generators.h"
#include "multihead/generate/models/recurrent_generator.h"
#include "multihead/models/config_json.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/models/recurrent_json.h"

namespace mh {

namespace {

class TransformerTranslation : public TranslationModel {
 public:
  explicit TransformerTranslation(std::shared_ptr<Transformer> model) : model_(std::move(model)), generator_(*model_) {}

  Facts facts() const override {
    const TransformerConfig& c = model_->config();
    return {c.vocabulary, c.max_length, c.decoder_layers, c.heads, c.begin, c.end};
  }
  const Generator& generator() const override { return generator_; }
  CrossEntropy loss(const PairBatch& batch, Pass& pass, float smoothing) const override {
    return model_->loss(batch, pass, smoothing);
  }
  Tensor looked_at(const TokenBatch& source, const TokenBatch& input, int64_t layer, Pass& pass) const override {
    return model_->cross_weights(input, model_->encode(source, pass), layer, pass).select(0, 0);
  }
  void reread(const TokenBatch& source, const TokenBatch& input, Pass& pass) const override {
    model_->decode(input, model_->encode(source, pass), pass);
  }
  void pack(DType compute) override { model_->pack(compute); }
  void save(const std::string& path, const ModelFileOptions& options) const override {
    save_transformer(path, *model_, options);
  }

 private:
  std::shared_ptr<Transformer> model_;
  TransformerGenerator generator_;
};

class RecurrentTranslation : public TranslationModel {
 public:
  explicit RecurrentTranslation(std::shared_ptr<RecurrentSeq2Seq> model)
      : model_(std::move(model)), generator_(*model_) {}

  Facts facts() const override {
    const RecurrentConfig& c = model_->config();
    const int64_t looking = c.attention == PairAttention::none ? 0 : 1;
    return {c.vocabulary, c.max_length, looking, looking, c.begin, c.end};
  }
  const Generator& generator() const override { return generator_; }
  CrossEntropy loss(const PairBatch& batch, Pass& pass, float smoothing) const override {
    return model_->loss(batch, pass, smoothing);
  }
  Tensor looked_at(const TokenBatch& source, const TokenBatch& input, int64_t layer, Pass& pass) const override {
    check(layer == 0, "attention: layer {} does not exist; expected 0, the only one", layer);
    return model_->attention_of(input, model_->encode(source, pass), pass);
  }
  void reread(const TokenBatch&, const TokenBatch&, Pass&) const override {
    fail(ErrorKind::unsupported,
         "recording: the attention of a recurrent model is not recorded; expected a Transformer");
  }
  void pack(DType compute) override { model_->pack(compute); }
  void save(const std::string& path, const ModelFileOptions& options) const override {
    save_model_file(path, model_->params(), recurrent_to_json(model_->config()), options);
  }

 private:
  std::shared_ptr<RecurrentSeq2Seq> model_;
  RecurrentGenerator generator_;
};

}  // namespace

std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<Transformer> model) {
  return std::make_unique<TransformerTranslation>(std::move(model));
}
std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<RecurrentSeq2Seq> model) {
  return std::make_unique<RecurrentTranslation>(std::move(model));
}

TranslationFolder load_translation_folder(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(folder + "/config.json", ignored)) {
    const FolderFacts facts = folder_facts(folder);
    fail(ErrorKind::invalid_argument, "{}: is a {} of Hugging Face's form; expected a translator of our own: {}",
         printable_path(folder), facts.description(), facts.advice());
  }
  ModelParts parts = read_model_folder(folder);
  const auto config = parts.file.metadata.find(kConfigKey);
  if (config == parts.file.metadata.end() || !says_recurrent(config->second))
    return {parts.tokenizer, translation_model(std::make_shared<Transformer>(transformer_of(std::move(parts))))};
  const RecurrentConfig recurrent = recurrent_from_json(config->second, parts.path);
  const auto store = std::make_shared<ParamStore>(std::move(parts.file.tensors));
  auto model = std::make_shared<RecurrentSeq2Seq>(recurrent, store);
  check_all_used(parts.path, *store);
  return {parts.tokenizer, translation_model(std::move(model))};
}

}  // namespace mh
