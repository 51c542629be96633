// The kinds of models that translate, behind one face.
#include "multihead/generate/text/translation_model.h"

#include <filesystem>

#include "multihead/base/printable.h"
#include "multihead/generate/models/model_generators.h"
#include "multihead/generate/models/pretrained_generator.h"
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

class PretrainedTranslation : public TranslationModel {
 public:
  PretrainedTranslation(std::shared_ptr<Pretrained> model, int32_t decoder_start)
      : model_(std::move(model)), generator_(*model_, decoder_start) {
    const Architecture& a = model_->architecture();
    check(a.cross_attention && a.encoder && a.embedding && !a.patches,
          "translator: a {} has no encoder that reads text; expected an encoder and a decoder", a.family);
  }

  Facts facts() const override {
    const StackOptions& decoder = *model_->architecture().decoder;
    const Generator::Limits limits = generator_.limits();
    return {limits.vocabulary, limits.most, decoder.layers, decoder.block.heads, generator_.prefix({}).front(),
            limits.end};
  }
  const Generator& generator() const override { return generator_; }
  CrossEntropy loss(const PairBatch&, Pass&, float) const override { refuse("trained"); }
  Tensor looked_at(const TokenBatch& source, const TokenBatch& input, int64_t layer, Pass& pass) const override {
    const int64_t layers = facts().layers;
    check(layer >= 0 && layer < layers, "attention: layer {} does not exist; expected 0 to {}", layer, layers - 1);
    const ModelOutputs out = model_->forward({.tokens = source, .decoder = input, .attentions = true}, pass);
    return out.layers.at("cross_attentions")[static_cast<size_t>(layer)].select(0, 0);
  }
  void reread(const TokenBatch& source, const TokenBatch& input, Pass& pass) const override {
    model_->forward({.tokens = source, .decoder = input}, pass);
  }
  void pack(DType compute) override { model_->pack(compute); }
  void save(const std::string&, const ModelFileOptions&) const override { refuse("saved"); }

 private:
  [[noreturn]] static void refuse(std::string_view what) {
    fail(ErrorKind::unsupported, "translator: a model of Hugging Face's is not {} as a translator; expected our own",
         what);
  }
  std::shared_ptr<Pretrained> model_;
  PretrainedGenerator generator_;
};

TranslationFolder load_pretrained_translation(const std::string& folder, DType compute) {
  const FolderFacts facts = folder_facts(folder);
  if (facts.head != HeadKind::seq2seq_lm)
    fail(ErrorKind::invalid_argument, "{}: is a {}; expected a model that writes one text from another: {}",
         printable_path(folder), facts.description(), facts.advice());
  TranslationFolder out{.ours = false, .tasks = load_text_tasks(folder)};
  out.tokenizer = Tokenizer::load(folder);
  out.model = translation_model(std::make_shared<Pretrained>(Pretrained::load(folder, {.compute = compute})),
                                out.tasks.at("").how.decoder_start);
  return out;
}

}  // namespace

std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<Pretrained> model, int32_t decoder_start) {
  return std::make_unique<PretrainedTranslation>(std::move(model), decoder_start);
}
std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<Transformer> model) {
  return std::make_unique<TransformerTranslation>(std::move(model));
}
std::unique_ptr<TranslationModel> translation_model(std::shared_ptr<RecurrentSeq2Seq> model) {
  return std::make_unique<RecurrentTranslation>(std::move(model));
}

TranslationFolder load_translation_folder(const std::string& folder, DType compute) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(folder + "/config.json", ignored))
    return load_pretrained_translation(folder, compute);
  ModelParts parts = read_model_folder(folder);
  TranslationFolder out{.tokenizer = parts.tokenizer, .tasks = {{"", {}}}};
  const auto config = parts.file.metadata.find(kConfigKey);
  if (config == parts.file.metadata.end() || !says_recurrent(config->second)) {
    out.model = translation_model(std::make_shared<Transformer>(transformer_of(std::move(parts))));
  } else {
    const RecurrentConfig recurrent = recurrent_from_json(config->second, parts.path);
    const auto store = std::make_shared<ParamStore>(std::move(parts.file.tensors));
    auto model = std::make_shared<RecurrentSeq2Seq>(recurrent, store);
    check_all_used(parts.path, *store);
    out.model = translation_model(std::move(model));
  }
  out.model->pack(compute);
  return out;
}

}  // namespace mh
