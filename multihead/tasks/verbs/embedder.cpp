// Texts through an encoder, a few thousand tokens at a time, and through the modules after it.
#include "multihead/tasks/verbs/embedder.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/base/printable.h"
#include "multihead/io/hash.h"
#include "multihead/tasks/verbs/sentence_modules.h"
#include "multihead/tasks/verbs/text_encoder.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr int64_t kTokensEmbeddedAtOnce = 4096;
constexpr int64_t kTextsEncodedPerTask = 64;

// Of the prompt alone, without the special token behind it.
int64_t prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  if (prompt.empty()) return 0;
  const Encoded alone = tokenizer.encode_input(prompt);
  const bool ends = !alone.ids.empty() && tokenizer.is_special(alone.ids.back());
  return static_cast<int64_t>(alone.ids.size()) - (ends ? 1 : 0);
}

void require_lowercase(const Tokenizer& tokenizer, const std::string& folder) {
  if (tokenizer.encode("ABC") != tokenizer.encode("abc"))
    fail(ErrorKind::unsupported, "{}: sentence_bert_config.json asks for lower case, which its tokenizer does not make",
         printable_path(folder));
}

}  // namespace

struct Embedder::Parts {
  SentenceModules modules;
  TextEncoder encoder;
  int64_t longest = 0, width = 0;
  std::string prompt{}, similarity{}, folder{};
};

Embedder Embedder::load(const std::string& folder, DType compute) {
  SentenceModules modules = read_sentence_modules(folder);
  TextEncoder encoder = load_text_encoder(modules.model_folder, compute);
  auto parts = std::make_shared<Parts>(Parts{.modules = std::move(modules), .encoder = std::move(encoder)});
  const SentenceModules& m = parts->modules;
  if (m.lowercase) require_lowercase(parts->encoder.tokenizer, folder);
  parts->longest = parts->encoder.longest;
  if (m.max_length > 0) parts->longest = std::min(parts->longest, m.max_length);
  const Architecture& a = parts->encoder.model.architecture();
  parts->width = (a.encoder ? a.encoder : a.decoder)->block.width * static_cast<int64_t>(m.pooling.size());
  for (const auto& module : m.after) {
    const auto* dense = std::get_if<DenseModule>(&module);
    if (dense == nullptr) continue;
    check(dense->weight.size(1) == parts->width,
          "{}: a dense layer reads vectors of {} numbers; those before it have {}", printable_path(folder),
          dense->weight.size(1), parts->width);
    parts->width = dense->weight.size(0);
  }
  if (!m.default_prompt.empty()) parts->prompt = m.prompts.at(m.default_prompt);
  parts->similarity = m.similarity.empty() ? "cosine" : m.similarity;
  parts->folder = folder;
  return Embedder(parts);
}

int64_t Embedder::width() const { return parts_->width; }
int64_t Embedder::max_length() const { return parts_->longest; }
bool Embedder::is_plain() const { return !parts_->modules.named; }
const std::map<std::string, std::string>& Embedder::prompts() const { return parts_->modules.prompts; }
const std::string& Embedder::default_prompt() const { return parts_->prompt; }

const std::string& Embedder::prompt(const std::string& name) const {
  const auto at = prompts().find(name);
  if (at != prompts().end()) return at->second;
  std::vector<std::string> names;
  for (const auto& [each, text] : prompts()) names.push_back(each);
  fail(ErrorKind::invalid_argument, "embed: {} has no prompt {}; expected one of [{}]", printable_path(parts_->folder),
       printable(name), fmt::join(names, ", "));
}

const std::string& Embedder::similarity() const { return parts_->similarity; }

std::string Embedder::fingerprint() const {
  detail::Hash hash;
  const std::string about = fmt::format("{} {} ", parts_->longest, similarity()) + parts_->encoder.tokenizer.json();
  hash.add(std::as_bytes(std::span(about)));
  const std::string probe[] = {"The quick brown fox jumps over the lazy dog, 1234567890."};
  const Tensor vector = (*this)(probe, "").vectors;
  hash.add(std::as_bytes(std::span(vector.data<float>(), static_cast<size_t>(width()))));
  return hash.digits();
}

Tensor Embedder::operator()(std::string_view text) const {
  const std::string one[] = {std::string(text)};
  return (*this)(one).vectors.reshape({width()});
}

Embeddings Embedder::operator()(std::span<const std::string> texts) const { return (*this)(texts, default_prompt()); }

Embeddings Embedder::operator()(std::span<const std::string> texts, const std::string& prompt) const {
  const TextEncoder& encoder = parts_->encoder;
  check(!utf8_error(prompt), "Embedder: the prompt is not UTF-8");
  for (size_t n = 0; n < texts.size(); ++n) check(!utf8_error(texts[n]), "Embedder: text {} is not UTF-8", n + 1);
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<Encoded> encoded(texts.size());
  std::vector<uint8_t> cut(texts.size());
  parallel_for((count + kTextsEncodedPerTask - 1) / kTextsEncodedPerTask, [&](int64_t task) {
    const int64_t end = std::min(count, (task + 1) * kTextsEncodedPerTask);
    for (auto n = static_cast<size_t>(task * kTextsEncodedPerTask); n < static_cast<size_t>(end); ++n) {
      bool is_cut = false;
      encoded[n] = encode_whole(encoder.tokenizer, prompt + texts[n], parts_->longest, is_cut);
      cut[n] = is_cut ? 1 : 0;
    }
  });
  const int64_t skipped = parts_->modules.pools_prompt ? 0 : prompt_tokens(encoder.tokenizer, prompt);
  Embeddings out{.vectors = empty({count, width()})};
  in_batches(encoded, kTokensEmbeddedAtOnce, [&](std::span<const size_t> which) {
    const ModelInputs inputs = inputs_of(encoder.model.architecture(), encoded, which);
    const Tensor rows = body_rows(encoder, inputs);
    const Tensor vectors =
        apply_modules(parts_->modules, pool_rows(rows, inputs.tokens.at, parts_->modules.pooling, skipped));
    for (size_t n = 0; n < which.size(); ++n)
      std::copy_n(vectors.data<float>() + static_cast<int64_t>(n) * width(), width(),
                  out.vectors.data<float>() + static_cast<int64_t>(which[n]) * width());
  });
  for (size_t n = 0; n < cut.size(); ++n)
    if (cut[n] != 0) out.cut.push_back(n);
  return out;
}

}  // namespace mh
