// The stacks of a model, layer by layer, with the weights of each attention call computed again from its lse.
#include "python/record_attention.h"

#include <cmath>
#include <deque>

#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/nn/blocks.h"
#include "multihead/nn/positions.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/embedding.h"

namespace mh::python {

namespace {

LayerPositions recorded_positions(ModelPositions positions, bool decoder) {
  switch (positions) {
    case ModelPositions::rotary: return Rotary{};
    case ModelPositions::alibi: return Alibi{};
    case ModelPositions::t5: return T5Buckets{.bidirectional = !decoder};
    default: return {};
  }
}

StackOptions recorded_stack(const TransformerConfig& c, bool decoder) {
  return {.block = {.width = c.width,
                    .heads = c.heads,
                    .feed_forward = c.feed_forward,
                    .norm = c.norm,
                    .middle = c.middle,
                    .positions = recorded_positions(c.positions, decoder)},
          .layers = decoder ? c.decoder_layers : c.encoder_layers};
}

// One call of attention over one sequence of queries and one of keys; its weights go to `weights` (H, queries, keys).
Tensor attend_and_record(const MultiHeadAttention::Heads& heads, const Sequences& queries, const Sequences& keys,
                         AttentionOptions options, const Tensor& weights) {
  options.packed = Packed{queries.starts, keys.starts};
  const AttentionResult result = attention(heads.q, heads.k, heads.v, options);
  weights.copy_from(attention_weights(heads.q, heads.k, result.lse, options).select(0, 0));
  return result.o;
}

TransformerConfig recorded_config(const Safetensors& file, const std::string& path) {
  const auto found = file.metadata.find(kConfigKey);
  if (found == file.metadata.end())
    fail(ErrorKind::io, "{}: has no '{}' in its metadata; expected the model's config as JSON", path, kConfigKey);
  return config_from_json(found->second, path);
}

}  // namespace

struct AttentionRecorder::Parts {
  Parts(const Safetensors& file, const std::string& path)
      : config(recorded_config(file, path)),
        store(file.tensors),
        norms(file.tensors),
        encoder(Params(store) / "encoder", recorded_stack(config, false)),
        decoder(Params(store) / "decoder", recorded_stack(config, true)) {
    const Shape table{config.vocabulary, config.width};
    source = &store.make("embedding.weight", table, Init::zeros());
    target = config.tied ? source : &store.make("target_embedding.weight", table, Init::zeros());
    if (config.positions == ModelPositions::sinusoidal)
      sinusoids = sinusoidal_positions(config.max_length, config.width);
    if (config.positions == ModelPositions::learned)
      learned = &store.make("positions.weight", {config.max_length, config.width}, Init::zeros());
    for (int64_t n = 0; n < config.encoder_layers; ++n)
      first_norms.emplace_back(Params(norms) / "encoder" / "layers" / n / "norm1", config.width);
    encoder.pack(DType::f32);
    decoder.pack(DType::f32);
  }

  TransformerConfig config;
  ParamStore store, norms;
  Encoder encoder;
  Decoder decoder;
  std::deque<Norm> first_norms;  // of the encoder's layers, which keep theirs to themselves
  const Param *source = nullptr, *target = nullptr, *learned = nullptr;
  Tensor sinusoids;

  Tensor embed(const Param& table, const TokenBatch& batch) const {
    check(batch.at.longest <= config.max_length, "attention: a sentence of {} tokens; expected at most {}",
          batch.at.longest, config.max_length);
    EmbeddingOptions options{.scale = std::sqrt(static_cast<float>(config.width))};
    if (sinusoids) {
      options.positions = sinusoids;
      options.position_ids = batch.at.positions;
    }
    const Tensor x = embedding(table.value, batch.ids, options);
    return learned != nullptr ? add(x, embedding(learned->value, batch.at.positions)) : x;
  }

  // The encoder's rows for the decoder.
  Tensor encode(const TokenBatch& batch, const Tensor& weights) const {
    Pass pass = Pass::inference();
    const Tensor embedded = embed(*source, batch);
    Tensor x = embedded;
    for (size_t n = 0; n < encoder.layers().size(); ++n) {
      const EncoderLayer& layer = encoder.layers()[n];
      const Tensor rows = config.norm == NormPlace::before ? first_norms[n](x) : x;
      attend_and_record(layer.self_attn.project(rows, batch.at.positions), batch.at, batch.at,
                        layer.self_attn.call_options(pass, {}), weights.select(0, static_cast<int64_t>(n)));
      x = layer(x, batch.at, pass);
    }
    return encoder(embedded, batch.at, pass);
  }

  void decode(const TokenBatch& batch, const Tensor& memory, const Sequences& memory_at,
              const RecordedAttention& out) const {
    Pass pass = Pass::inference();
    Tensor x = embed(*target, batch);
    for (size_t n = 0; n < decoder.layers().size(); ++n) {
      const DecoderLayer& layer = decoder.layers()[n];
      const auto at = static_cast<int64_t>(n);
      x = layer.step(
          x, pass,
          [&](const Tensor& rows) {
            return attend_and_record(layer.self_attn.project(rows, batch.at.positions), batch.at, batch.at,
                                     layer.self_attn.call_options(pass, causal()), out.decoder.select(0, at));
          },
          [&](const Tensor& rows) {
            const auto kv = layer.cross_attn.keys_values(memory, memory, memory_at.positions);
            return attend_and_record({layer.cross_attn.queries(rows, batch.at.positions), kv.k, kv.v}, batch.at,
                                     memory_at, layer.cross_attn.call_options(pass, {}), out.cross.select(0, at));
          });
    }
  }
};

AttentionRecorder::AttentionRecorder(const std::string& folder) {
  const std::string path = folder + "/model.safetensors";
  parts_ = std::make_unique<const Parts>(read_safetensors(path), path);
}

AttentionRecorder::~AttentionRecorder() = default;

RecordedAttention AttentionRecorder::operator()(std::vector<int32_t> source, std::vector<int32_t> target) const {
  const TransformerConfig& config = parts_->config;
  source.push_back(config.end);
  target.insert(target.begin(), config.begin);
  const TokenBatch read = token_batch({source}), written = token_batch({target});
  const int64_t sources = read.at.rows, targets = written.at.rows;
  const RecordedAttention out{empty({config.encoder_layers, config.heads, sources, sources}),
                              empty({config.decoder_layers, config.heads, targets, targets}),
                              empty({config.decoder_layers, config.heads, targets, sources})};
  parts_->decode(written, parts_->encode(read, out.encoder), read.at, out);
  return out;
}

}  // namespace mh::python
