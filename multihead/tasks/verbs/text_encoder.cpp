// Loading of encoders, and their batches.
#include "multihead/tasks/verbs/text_encoder.h"

#include <algorithm>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/models/pretrained/network.h"
#include "multihead/ops/elementwise.h"
#include "multihead/tasks/tokenizer_limit.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

TextEncoder load_encoder(const std::string& folder, DType compute) {
  Pretrained model = Pretrained::load(folder, {.compute = compute});
  const Architecture& a = model.architecture();
  const bool writes = a.encoder && a.decoder && a.head.kind != HeadKind::question;  // else it reads its text twice
  if (!a.embedding || a.patches || writes)
    fail(ErrorKind::unsupported, "{}: is a {} {}; expected a model that reads one text and writes none",
         printable_path(folder), a.family, name_of(a.head.kind));
  int64_t longest = tokenizer_limit(folder);
  if (a.embedding->max_positions > 0) longest = std::min(longest, a.embedding->max_positions);
  return {Tokenizer::load(folder), std::move(model), longest, compute};
}

}  // namespace

TextEncoder load_text_encoder(const std::string& folder, DType compute) {
  const FolderFacts facts = folder_facts(folder);
  if (facts.layout == FolderFacts::Layout::ours)
    fail(ErrorKind::io, "{}: is a model of multihead's own; expected a folder of Hugging Face's, or {}",
         printable_path(folder), facts.advice());
  return load_encoder(folder, compute);
}

TextEncoder load_text_encoder(const std::string& folder, HeadKind head, DType compute) {
  const FolderFacts facts = folder_facts(folder);
  if (facts.head != head)
    fail(ErrorKind::io, "{}: is a {}; expected a {}: {}", printable_path(folder), facts.description(), name_of(head),
         facts.advice());
  return load_encoder(folder, compute);
}

Encoded encode_whole(const Tokenizer& tokenizer, std::string_view text, int64_t max_length, bool& cut) {
  check(!utf8_error(text), "encode: the text is not UTF-8");
  Encoded out = tokenizer.encode_input(text);
  cut = static_cast<int64_t>(out.ids.size()) > max_length;
  if (cut) out = tokenizer.encode_input(text, {.max_length = max_length});
  if (out.ids.empty())
    out = {.ids = {tokenizer.id("[UNK]").value_or(tokenizer.id("<unk>").value_or(0))},
           .types = {0},
           .offsets = {{}},
           .words = {-1},
           .sequences = {-1}};
  return out;
}

void in_batches(std::span<const Encoded> sequences, int64_t tokens,
                const std::function<void(std::span<const size_t> which)>& run) {
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sequences[a].ids.size() < sequences[b].ids.size(); });
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    for (int64_t filled = 0; end < order.size() && filled < tokens; ++end)
      filled += static_cast<int64_t>(sequences[order[end]].ids.size());
    run(std::span(order).subspan(begin, end - begin));
    begin = end;
  }
}

ModelInputs inputs_of(const Architecture& model, std::span<const Encoded> sequences, std::span<const size_t> which) {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> types;
  for (const size_t n : which) {
    ids.push_back(sequences[n].ids);
    types.insert(types.end(), sequences[n].types.begin(), sequences[n].types.end());
  }
  ModelInputs out{.tokens = token_batch(ids)};
  if (model.embedding->types > 1) out.types = tensor<int32_t>(types, {static_cast<int64_t>(types.size())});
  return out;
}

Tensor body_rows(const TextEncoder& encoder, const ModelInputs& inputs) {
  const Network& network = encoder.model.network();
  Pass pass = Pass::inference(encoder.compute);
  if (network.architecture.encoder) return cast(network.encode(inputs.tokens, inputs.types, pass).rows, DType::f32);
  return cast(network.decode(inputs.tokens, {}, pass), DType::f32);
}

}  // namespace mh
