// A Hugging Face folder's model: loaded as it is, run, trained further, and written back.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "multihead/models/pretrained/architecture.h"
#include "multihead/models/pretrained/token_batch.h"
#include "multihead/nn/pass.h"

namespace mh {

struct Network;

struct PretrainedOptions {
  DType compute = DType::f32;  // of the matrix products: f32 or bf16
  // Weights are copied into f32 and have gradients. Else they stay in the mapped file, in the type they have there, and
  // what products read is laid out once beside it.
  bool trainable = false;
  // The family, where config.json does not say model_type; empty: told by tensors that only one family has.
  std::string as{};
};

// Sequences of different lengths, without padding. What a model does not read is left empty.
struct ModelInputs {
  TokenBatch tokens{};
  Tensor types{};  // i32 (rows of tokens); empty: all 0
  // Of an encoder-decoder. One that labels texts or answers questions reads its text a second time here, behind the
  // token that texts begin with (of mBART, the text's own last): left empty, it is made so.
  TokenBatch decoder{};
  Tensor pixels{};  // f32 (B, channels, height, width)
  bool hidden_states = false, attentions = false;
};

// Tensors by Hugging Face's names (last_hidden_state, pooler_output, logits, start_logits, end_logits,
// encoder_last_hidden_state, text_embeds, image_embeds, logits_per_image, logits_per_text). Those of tokens are rows
// without padding, (rows, …) with the boundaries `at`; of a decoder's tokens, `decoder_at`. Lists by layer, where asked
// for: hidden_states, attentions f32 (B, H, Tq, Tk), decoder_hidden_states, decoder_attentions, cross_attentions;
// the encoder's of a model with both are called encoder_hidden_states and encoder_attentions.
struct ModelOutputs {
  Sequences at{}, decoder_at{};
  std::map<std::string, Tensor> tensors{};
  std::map<std::string, std::vector<Tensor>> layers{};

  // Throws: invalid_argument, with the names there are.
  const Tensor& operator[](const std::string& name) const;
};

class Pretrained {
 public:
  // FOLDER/config.json and FOLDER/model.safetensors, or the shards that FOLDER/model.safetensors.index.json names.
  // Throws: io where a file cannot be read or breaks its format, or a shard's name leaves the folder; unsupported for a
  // family, class or option that is not known; invalid_argument, by name, where a tensor is missing or has another
  // shape.
  static Pretrained load(const std::string& folder, const PretrainedOptions& options = {});
  // Fresh weights.
  static Pretrained fresh(const Architecture& architecture, uint64_t seed);
  // The same, made in `store`, whose options say the seed and the type of the products.
  static Pretrained fresh(const Architecture& architecture, std::shared_ptr<ParamStore> store);
  Pretrained(Pretrained&&) noexcept;
  Pretrained& operator=(Pretrained&&) noexcept;
  ~Pretrained();

  // config.json and model.safetensors, which transformers loads. Of a loaded model: every tensor of its folder under
  // its name there, with its bits where it was not trained, and every key of its config. Durable. Throws: io.
  void save(const std::string& folder) const;

  // Throws: invalid_argument where an input is missing, one is given that the model does not read, a sequence is longer
  // than the model's positions, or an id is outside its table.
  ModelOutputs forward(const ModelInputs& inputs, Pass& pass) const;
  ModelOutputs forward(const ModelInputs& inputs) const;  // inference, in the options' type

  const Architecture& architecture() const;
  const Network& network() const;
  ParamStore& params() const;
  // Tensors of the folder that this model does not read; those that no model needs are not among them.
  const std::vector<std::string>& unused() const;
  // After training: lays the weights out for inference again.
  void pack(DType compute = DType::f32);

 private:
  struct Parts;
  explicit Pretrained(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace mh
