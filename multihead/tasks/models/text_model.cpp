// Building text models from a configuration or a folder, and running them.
#include "multihead/tasks/models/text_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/io/file_bytes.h"
#include "multihead/models/pretrained/families.h"

namespace mh {

namespace {

using Json = nlohmann::ordered_json;

std::string read_file_text(const std::string& path) {
  const detail::FileBytes file = detail::read_file(path);
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

const char* activation_name(const TaskSetup& setup) {
  switch (setup.model.middle) {
    case Middle::relu: return "relu";
    case Middle::gelu: return "gelu";
    case Middle::gelu_tanh: return "gelu_new";
    default: break;
  }
  fail(ErrorKind::invalid_argument,
       "config: model.activation is gated, and model.kind is \"{}\"; expected \"relu\", \"gelu\" or \"gelu_tanh\"",
       setup.recurrent.family());
}

double rate_or(double given, float otherwise) { return given < 0 ? double{otherwise} : given; }

// A config.json as transformers would write it, of the sizes that [model] names.
std::string fresh_config(const TaskSetup& setup, int64_t vocabulary) {
  const TransformerConfig& m = setup.model;
  const double inside = m.dropout, classifier = rate_or(setup.head.classifier_dropout, m.dropout);
  Json out{
      {"model_type", setup.recurrent.family()}, {"vocab_size", vocabulary}, {"max_position_embeddings", m.max_length}};
  const auto put = [&](const Json& more) { out.update(more); };
  if (setup.recurrent.family() == "distilbert") {
    put({{"dim", m.width},
         {"n_layers", m.encoder_layers},
         {"n_heads", m.heads},
         {"hidden_dim", m.feed_forward},
         {"activation", activation_name(setup)},
         {"dropout", inside},
         {"attention_dropout", inside},
         {"seq_classif_dropout", classifier}});
    return out.dump();
  }
  put({{"hidden_size", m.width},
       {"num_hidden_layers", m.encoder_layers},
       {"num_attention_heads", m.heads},
       {"intermediate_size", m.feed_forward},
       {"classifier_dropout", classifier}});
  if (setup.recurrent.family() == "bert") {
    put({{"hidden_act", activation_name(setup)},
         {"hidden_dropout_prob", inside},
         {"attention_probs_dropout_prob", inside},
         {"type_vocab_size", 2}});
  } else {
    put({{"embedding_dropout", rate_or(setup.head.embedding_dropout, m.dropout)},
         {"attention_dropout", inside},
         {"mlp_dropout", inside},
         {"classifier_pooling", setup.head.pooling == Pooling::first ? "cls" : "mean"},
         {"layer_types", std::vector<std::string>(static_cast<size_t>(m.encoder_layers), "full_attention")}});
  }
  return out.dump();
}

void name_special_tokens(Architecture& a, const Tokenizer& tokenizer) {
  const auto one_of = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const auto id = tokenizer.id(name)) return *id;
    return -1;
  };
  a.tokens.pad = one_of({"[PAD]", "<pad>"});
  a.tokens.begin = one_of({"[CLS]", "<s>"});
  a.tokens.ends.clear();
  if (const int32_t end = one_of({"[SEP]", "</s>"}); end >= 0) a.tokens.ends = {end};
}

Architecture described(const TextModelPlan& plan, const std::string& folder) {
  const TaskSetup& setup = plan.setup;
  const bool fresh = folder.empty();
  const std::string text = fresh ? fresh_config(setup, plan.tokenizer.size()) : read_file_text(folder + "/config.json");
  Architecture a = read_config(text, fresh ? "config" : folder + "/config.json");
  check(a.encoder && a.embedding && !a.decoder && !a.patches,
        "config: model.from {} is a {} model; expected an encoder of text", setup.from, a.family);
  a.model_class.clear();
  a.head.kind = plan.head;
  a.labels = plan.labels.names();
  a.problem_type = plan.head == HeadKind::sequence ? problem_type_of(setup.task.labels) : "";
  if (fresh) {
    a.config.clear();
    name_special_tokens(a, plan.tokenizer);
  }
  check(a.embedding->vocabulary >= plan.tokenizer.size(),
        "config: the tokenizer has {} tokens, and the model of {} {}; expected a tokenizer of its own",
        plan.tokenizer.size(), folder, a.embedding->vocabulary);
  return a;
}

}  // namespace

std::string problem_type_of(LabelKind kind) {
  switch (kind) {
    case LabelKind::several: return "multi_label_classification";
    case LabelKind::number: return "regression";
    default: return "single_label_classification";
  }
}

LabelKind label_kind_of(const std::string& problem_type) {
  for (const LabelKind kind : {LabelKind::several, LabelKind::number})
    if (problem_type == problem_type_of(kind)) return kind;
  return LabelKind::one;
}

bool is_of_family(const TaskSetup& setup) {
  return !detail::describing_folder(setup).empty() || !setup.recurrent.family().empty();
}

Tensor TextModel::logits(const TokenBatch& texts, const Tensor& types, Pass& pass) const {
  if (const SequenceClassifier* model = own()) return model->logits(texts, types, pass);
  return outputs(texts, types, pass)["logits"];
}

ModelOutputs TextModel::outputs(const TokenBatch& texts, const Tensor& types, Pass& pass) const {
  check(pretrained() != nullptr, "TextModel: a model of multihead's own has no outputs by name");
  ModelInputs inputs{.tokens = texts};
  if (pretrained()->architecture().embedding->types > 0) inputs.types = types;
  return pretrained()->forward(inputs, pass);
}

void TextModel::pack(DType compute) {
  std::visit([&](auto& model) { model.pack(compute); }, model_);
}

int64_t TextModel::classes() const {
  return own() != nullptr ? own()->config().classes : pretrained()->architecture().head.outputs;
}

int64_t TextModel::max_length() const {
  if (own() != nullptr) return own()->config().encoder.max_length;
  const int64_t longest = pretrained()->architecture().embedding->max_positions;
  return longest == 0 ? int64_t{1} << 20 : longest;
}

LabelKind TextModel::labels() const {
  return own() != nullptr ? own()->config().labels : label_kind_of(pretrained()->architecture().problem_type);
}

bool TextModel::is_pair_model() const { return own() != nullptr && own()->config().types == 2; }

const std::vector<std::string>& TextModel::unused() const {
  static const std::vector<std::string> none;
  return own() != nullptr ? none : pretrained()->unused();
}

std::string TextModel::summary() const {
  if (own() != nullptr) return "";
  const Architecture& a = pretrained()->architecture();
  return fmt::format("{}, width {}, {} heads, {} layers", a.family, a.encoder->block.width, a.encoder->block.heads,
                     a.encoder->layers);
}

TextModel make_text_model(const TextModelPlan& plan, std::shared_ptr<ParamStore> store) {
  const TaskSetup& setup = plan.setup;
  const std::string folder = detail::describing_folder(setup);
  if (!is_of_family(setup)) {
    SequenceClassifierConfig config{.encoder = setup.model,
                                    .head = setup.head,
                                    .types = setup.data.pair.empty() ? 1 : 2,
                                    .classes = plan.labels.size(),
                                    .labels = plan.head == HeadKind::token ? LabelKind::one : setup.task.labels};
    config.encoder.vocabulary = plan.tokenizer.size();
    if (plan.head == HeadKind::token) config.head.pooling = Pooling::none;
    return TextModel(SequenceClassifier(config, std::move(store)));
  }
  const Architecture a = described(plan, folder);
  Pretrained model = Pretrained::fresh(a, store);
  // A checkpoint brings the weights of a run that is gone on with.
  if (!folder.empty() && folder == setup.from)
    detail::copy_weights(Pretrained::load(folder, {.trainable = true}), model.architecture(), *store, setup.events);
  return TextModel(std::move(model));
}

}  // namespace mh
