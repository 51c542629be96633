// Calls kept as they were made; weights, statistics and rollout rebuilt from their lse.
#include "multihead/show/recording.h"

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/generate/text/words.h"
#include "multihead/ops/products/matmul.h"

namespace mh {

namespace {

Tensor mean_over_heads(const RecordedLayer& layer) {
  const int64_t n = layer.queries(), heads = layer.heads();
  const Tensor mean = zeros({n, n});
  float* out = mean.data<float>();
  for (int64_t h = 0; h < heads; ++h) {
    const Tensor one = layer.weights({static_cast<int32_t>(h)});
    const float* w = one.data<float>();
    parallel_for(n, [&](int64_t i) {
      for (int64_t j = i * n; j < (i + 1) * n; ++j) out[j] += w[j] / static_cast<float>(heads);
    });
  }
  return mean;
}

}  // namespace

Tensor RecordedLayer::weights(const std::vector<int32_t>& heads, const std::vector<int32_t>& rows) const {
  return attention_weights(call.q, call.k, call.result.lse, options, heads, rows).select(0, 0);
}

AttentionStatistics RecordedLayer::statistics(int top) const {
  const AttentionStatistics all = attention_statistics(call.q, call.k, call.result.lse, options, top);
  return {.entropy = all.entropy.select(0, 0),
          .top_keys = all.top_keys.select(0, 0),
          .top_weights = all.top_weights.select(0, 0),
          .received = all.received.select(0, 0),
          .distance = all.distance.select(0, 0)};
}

Tensor AttentionRecorder::attended(const AttendedCall& call) {
  const Packed& packed = call.options.packed.value();
  check(packed.cu_seqlens_q.count() == 2 && packed.cu_seqlens_k.count() == 2,
        "record: a batch of {} sequences; expected one, q is {}", packed.cu_seqlens_q.count() - 1, call.call.q.shape());
  const AttentionKind kind = call.cross                 ? AttentionKind::cross
                             : call.options.mask.causal ? AttentionKind::decoder
                                                        : AttentionKind::encoder;
  RecordedLayer layer{
      .kind = kind, .layer = seen_[static_cast<int>(kind)]++, .call = call.call, .options = call.options};
  layer.options.dropout = {};
  layer.call.q = call.call.q.detach();
  layer.call.k = call.call.k.detach();
  layer.call.v = {};
  layer.call.result = {.o = {}, .lse = call.call.result.lse.detach()};
  layers.push_back(std::move(layer));
  return call.call.result.o;
}

std::vector<const RecordedLayer*> Recording::of(AttentionKind kind) const {
  std::vector<const RecordedLayer*> out;
  for (const RecordedLayer& layer : layers)
    if (layer.kind == kind) out.push_back(&layer);
  return out;
}

Tensor Recording::rollout(AttentionKind kind) const {
  check(kind != AttentionKind::cross, "rollout: of cross-attention; expected that of an encoder or a decoder");
  const std::vector<const RecordedLayer*> of_kind = of(kind);
  if (of_kind.empty()) return {};
  const int64_t n = of_kind.front()->queries(), count = static_cast<int64_t>(of_kind.size());
  const Tensor out = empty({count, n, n});
  for (int64_t l = 0; l < count; ++l) {
    const Tensor mixed = mean_over_heads(*of_kind[static_cast<size_t>(l)]), here = out.select(0, l);
    float* m = mixed.data<float>();
    for (int64_t i = 0; i < n * n; ++i) m[i] *= 0.5F;
    for (int64_t i = 0; i < n; ++i) m[i * n + i] += 0.5F;
    here.copy_from(l == 0 ? mixed : matmul(mixed, out.select(0, l - 1)));
  }
  return out;
}

namespace {

Recording recorded(AttentionRecorder recorder, const SentenceTokens& tokens) {
  RecordedText read{"read", {"<s>"}, {-1}};
  read.tokens.insert(read.tokens.end(), tokens.target.begin(), tokens.target.end() - 1);
  read.words.insert(read.words.end(), tokens.target_words.begin(), tokens.target_words.end() - 1);
  return {.layers = std::move(recorder.layers),
          .texts = {RecordedText{"source", tokens.source, tokens.source_words}, std::move(read),
                    RecordedText{"written", tokens.target, tokens.target_words}}};
}

}  // namespace

Recording record(const Translator& translator, const std::string& source, const Hypothesis& written) {
  AttentionRecorder recorder;
  const SentenceTokens tokens = translator.reread(source, written, recorder);
  return recorded(std::move(recorder), tokens);
}

Recording record(const Translator& translator, const TranslatedSentence& sentence) {
  if (sentence.source_ids.empty()) return record(translator, sentence.source, sentence);
  AttentionRecorder recorder;
  const SentenceTokens tokens = translator.reread(sentence.source_ids, sentence, recorder);
  return recorded(std::move(recorder), tokens);
}

Recording record(const DecoderOnly& model, const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  if (model.config().begin >= 0) ids.insert(ids.begin(), model.config().begin);
  check(!ids.empty(), "record: the text has no token; expected one or more");
  const auto longest = static_cast<size_t>(model.config().max_length);
  const bool cut = ids.size() > longest;
  if (cut) ids.resize(longest);
  AttentionRecorder recorder;
  Pass pass = Pass::inference().watched_by(&recorder);
  model.hidden(token_batch({ids}), pass);
  RecordedText tokens{"text", {}, detail::words_of(tokenizer, ids)};
  for (const int32_t id : ids) tokens.tokens.push_back(detail::token_text(tokenizer, id));
  return {.layers = std::move(recorder.layers), .texts = {std::move(tokens)}, .cut = cut};
}

}  // namespace mh
