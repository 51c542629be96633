// Weights renamed and permuted, and the files that stand beside them.
#include "multihead/models/convert/to_huggingface.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"
#include "multihead/models/model_file.h"
#include "multihead/models/pretrained/families.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/ops/elementwise.h"

namespace mh {

namespace {

using OrderedJson = nlohmann::ordered_json;

// Of the layer that stands for a norm (add_last_layer): a power of two that half precision holds as well.
constexpr float kSmall = 1.0F / 4096;
const float kDivisor = std::sqrt(kSmall * kSmall + Norm::Options{}.eps);

// Along one axis, even elements before odd ones.
Tensor evens_then_odds(const Tensor& x, int axis) {
  const int64_t half = x.size(axis) / 2;
  const Tensor out = empty(x.shape(), x.dtype());
  std::vector<int64_t> sizes;
  for (int n = 0; n < x.rank(); ++n) sizes.push_back(x.size(n));
  sizes[static_cast<size_t>(axis)] = half;
  sizes.insert(sizes.begin() + axis + 1, 2);
  const Tensor pairs = x.contiguous().reshape(Shape(sizes));
  for (int64_t odd = 0; odd < 2; ++odd)
    out.slice(axis, odd * half, (odd + 1) * half).copy_from(pairs.select(axis + 1, odd));
  return out;
}

// Where a tensor of a layer touches the residual stream: rows (axis 0, also of vectors), columns, or not at all.
std::optional<int> stream_axis(std::string_view name) {
  if (name.find(".norm") != name.npos || name.find(".out_proj.") != name.npos || name.find(".linear2.") != name.npos)
    return 0;
  return name.ends_with("linear1.weight") || name.ends_with("in_proj_weight") ? std::optional(1) : std::nullopt;
}

// Our tensors by the names that a Pretrained has for them.
class Renamed {
 public:
  Renamed(const Transformer& model, DType stored) : model_(model), config_(model.config()), stored_(stored) {}

  NamedTensors tensors() {
    for (const auto& [name, value] : model_.params().values()) take(name, value.to(Device{}));
    put("head.out.bias", zeros({config_.vocabulary}));
    if (config_.norm == NormPlace::after) {
      add_last_layer("encoder", config_.encoder_layers);
      add_last_layer("decoder", config_.decoder_layers);
    }
    return std::move(out_);
  }

 private:
  void put(const std::string& name, const Tensor& value) { out_[name] = value.rank() == 2 ? value.to(stored_) : value; }

  void take(const std::string& name, const Tensor& value) {
    if (name == "embedding.weight") return put("embedding.tokens.weight", evens_then_odds(value, 1));
    const std::optional<int> axis = stream_axis(name);
    const Tensor permuted = axis ? evens_then_odds(value, *axis) : value;
    const size_t packed = name.find("in_proj_");
    if (packed == name.npos) return put(name, permuted);
    const int64_t rows = value.size(0) / 3;
    const std::string at = name.substr(0, packed), kind = name.substr(packed + std::string_view("in_proj_").size());
    for (int64_t part = 0; part < 3; ++part)
      put(at + "qkv"[part] + "_proj." + kind, permuted.slice(0, part * rows, (part + 1) * rows).contiguous());
  }

  // A layer after the last one that leaves its input x as it is but for a norm w · n(x) + b, the one of the stack's
  // end. Its sublayers give 0. Its first norm is k · n with k² much smaller than eps: each further norm divides such
  // rows by r = √(k² + eps), whatever they are, and its weight takes that back.
  void add_last_layer(const std::string& stack, int64_t number) {
    const int64_t c = config_.width, f = config_.feed_forward;
    const std::string at = fmt::format("{}.layers.{}.", stack, number);
    const bool decoder = stack == "decoder";
    for (const char* attention : {"self_attn", "multihead_attn"}) {
      if (!decoder && attention == std::string("multihead_attn")) continue;
      for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"}) put_zeros(at + attention + "." + part, c, c);
    }
    put_zeros(at + "linear1", f, c);
    put_zeros(at + "linear2", c, f);
    const int norms = decoder ? 3 : 2;
    for (int n = 1; n < norms; ++n) {
      put(fmt::format("{}norm{}.weight", at, n), full({c}, n == 1 ? kSmall : kDivisor));
      put(fmt::format("{}norm{}.bias", at, n), zeros({c}));
    }
    put(fmt::format("{}norm{}.weight", at, norms), scale(out_.at(stack + ".norm.weight"), kDivisor / kSmall));
    put(fmt::format("{}norm{}.bias", at, norms), out_.at(stack + ".norm.bias"));
    out_.erase(stack + ".norm.weight");
    out_.erase(stack + ".norm.bias");
  }
  void put_zeros(const std::string& name, int64_t rows, int64_t columns) {
    put(name + ".weight", zeros({rows, columns}));
    put(name + ".bias", zeros({rows}));
  }

  const Transformer& model_;
  const TransformerConfig& config_;
  DType stored_;
  NamedTensors out_;
};

void refuse_unless(bool holds, std::string_view what, std::string_view expected) {
  if (!holds)
    fail(ErrorKind::unsupported, "to Hugging Face: the model has {}, which neither Pegasus nor Marian has; expected {}",
         what, expected);
}

void check_expressible(const TransformerConfig& c) {
  const std::pair<ModelPositions, const char*> positions[] = {{ModelPositions::learned, "learned positions"},
                                                              {ModelPositions::rotary, "rotary positions"},
                                                              {ModelPositions::alibi, "ALiBi's positions"},
                                                              {ModelPositions::t5, "T5's positions"}};
  for (const auto& [kind, what] : positions) refuse_unless(c.positions != kind, what, "sinusoidal ones");
  refuse_unless(!is_gated(c.middle), "a gated feed-forward", "relu or gelu");
  refuse_unless(c.tied, "tables of its own for source, target and output", "one, tied = true");
  refuse_unless(c.width % 2 == 0, "an odd width", "an even one");
  refuse_unless(c.norm == NormPlace::after || c.encoder_layers > 0, "no encoder layer", "one or more");
}

const char* activation_name(Middle middle) {
  return middle == Middle::relu ? "relu" : middle == Middle::gelu ? "gelu" : "gelu_new";
}

// Every key that transformers or another reader of such a folder may want.
OrderedJson config_of(const TransformerConfig& c) {
  const bool pegasus = c.norm == NormPlace::before;
  const int64_t more = pegasus ? 0 : 1;
  const double dropout = std::stod(fmt::format("{}", c.dropout));  // 0.1, not the digits of the float
  OrderedJson out{{"model_type", pegasus ? "pegasus" : "marian"},
                  {"architectures", {pegasus ? "PegasusForConditionalGeneration" : "MarianMTModel"}},
                  {"is_encoder_decoder", true},
                  {"vocab_size", c.vocabulary},
                  {"d_model", c.width},
                  {"max_position_embeddings", c.max_length},
                  {"num_hidden_layers", c.encoder_layers + more},
                  {"encoder_layers", c.encoder_layers + more},
                  {"encoder_attention_heads", c.heads},
                  {"encoder_ffn_dim", c.feed_forward},
                  {"decoder_layers", c.decoder_layers + more},
                  {"decoder_attention_heads", c.heads},
                  {"decoder_ffn_dim", c.feed_forward},
                  {"activation_function", activation_name(c.middle)},
                  {"dropout", dropout},
                  {"attention_dropout", dropout},
                  {"activation_dropout", dropout},
                  {"scale_embedding", true},
                  {"task_specific_params", {{"translation", OrderedJson::object()}}},
                  {"tie_word_embeddings", true},
                  {"pad_token_id", c.pad},
                  {"bos_token_id", c.begin},
                  {"eos_token_id", c.end},
                  {"decoder_start_token_id", c.begin},
                  {"forced_eos_token_id", nullptr},
                  {"dtype", "float32"},
                  {"torch_dtype", "float32"}};
  if (!pegasus) {
    out["decoder_vocab_size"] = c.vocabulary;
    out["share_encoder_decoder_embeddings"] = true;
  }
  return out;
}

OrderedJson generation_of(const TransformerConfig& c) {
  return {{"decoder_start_token_id", c.begin},
          {"bos_token_id", c.begin},
          {"eos_token_id", c.end},
          {"pad_token_id", c.pad},
          {"num_beams", 4},
          {"early_stopping", "never"},
          {"length_penalty", 1.0},
          {"max_length", c.max_length}};
}

OrderedJson ended_by(const std::string& token, int32_t id) {
  const auto text = [](const char* which, int type) {
    return OrderedJson{{"Sequence", {{"id", which}, {"type_id", type}}}};
  };
  const auto end = [&](int type) { return OrderedJson{{"SpecialToken", {{"id", token}, {"type_id", type}}}}; };
  return {{"type", "TemplateProcessing"},
          {"single", OrderedJson::array({text("A", 0), end(0)})},
          {"pair", OrderedJson::array({text("A", 0), end(0), text("B", 1), end(1)})},
          {"special_tokens",
           {{token, {{"id", token}, {"ids", OrderedJson::array({id})}, {"tokens", OrderedJson::array({token})}}}}}};
}

void write_tokenizer(const Tokenizer& tokenizer, const TransformerConfig& c, const std::string& folder) {
  OrderedJson json = OrderedJson::parse(tokenizer.json());
  json["post_processor"] = ended_by(tokenizer.token(c.end), c.end);
  const std::string text = json.dump(2);
  Tokenizer::parse(text, folder + "/tokenizer.json");
  write_durably(folder + "/tokenizer.json", text);
  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", c.max_length},
                     {"clean_up_tokenization_spaces", false},        {"pad_token", tokenizer.token(c.pad)},
                     {"bos_token", tokenizer.token(c.begin)},        {"eos_token", tokenizer.token(c.end)}};
  if (const auto unknown = tokenizer.id("<unk>"); unknown && tokenizer.is_special(*unknown))
    config["unk_token"] = "<unk>";
  write_durably(folder + "/tokenizer_config.json", config.dump(2) + "\n");
}

constexpr std::string_view kReadme =
    "---\n"
    "library_name: transformers\n"
    "---\n"
    "# Text to text\n"
    "\n"
    "A Transformer that `multihead` trained, as a `{}`: the same function, its residual stream permuted. Made by\n"
    "`multihead convert … --to huggingface`.\n"
    "\n"
    "```python\n"
    "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n"
    "\n"
    "tokenizer, model = AutoTokenizer.from_pretrained(\".\"), AutoModelForSeq2SeqLM.from_pretrained(\".\")\n"
    "ids = model.generate(**tokenizer([\"How are you?\"], return_tensors=\"pt\", return_token_type_ids=False))\n"
    "print(tokenizer.batch_decode(ids, skip_special_tokens=True))\n"
    "```\n"
    "\n"
    "`multihead translate` cuts a line into sentences and translates each for itself; `generate` takes a text as it is: give\n"
    "it one sentence at a time.\n";

}  // namespace

Pretrained to_huggingface(const Transformer& model, const ToHuggingFaceOptions& options) {
  check_expressible(model.config());
  Architecture a = read_config(config_of(model.config()).dump(2) + "\n", "config.json");
  a.head.kind = HeadKind::seq2seq_lm;
  return Pretrained::fresh(
      a, std::make_shared<ParamStore>(Renamed(model, options.stored).tensors(), ParamStoreOptions{.in_place = true}));
}

Pretrained write_as_huggingface(const std::string& from, const std::string& to, std::optional<DType> stored) {
  const FolderFacts facts = folder_facts(from);
  check(facts.layout == FolderFacts::Layout::ours, "{}: is a {} of Hugging Face's already; expected one of our own",
        printable_path(from), facts.description());
  if (facts.kind != "transformer")
    fail(ErrorKind::unsupported, "{}: is a {} ({}); expected an encoder-decoder Transformer", printable_path(from),
         name_of(facts.head), facts.kind);
  ModelParts parts = read_model_folder(from);
  const Tokenizer tokenizer = parts.tokenizer;
  const auto table = parts.file.tensors.find("embedding.weight");
  const DType kept = table == parts.file.tensors.end() ? DType::f32 : table->second.dtype();
  const Transformer model = transformer_of(std::move(parts));
  Pretrained out = to_huggingface(model, {.stored = stored.value_or(kept)});
  make_folder(to);
  write_tokenizer(tokenizer, model.config(), to);
  write_durably(to + "/generation_config.json", generation_of(model.config()).dump(2) + "\n");
  write_durably(to + "/README.md", fmt::format(kReadme, out.architecture().model_class));
  out.save(to);
  return out;
}

}  // namespace mh
