// Text to tokens, tokens to sentences, sentences to text.
#include "multihead/decode/translator.h"

#include <algorithm>
#include <filesystem>

#include "multihead/base/parallel.h"
#include "multihead/base/printable.h"
#include "multihead/decode/search.h"
#include "multihead/decode/words.h"
#include "multihead/models/model_file.h"
#include "multihead/text/tokenizer.h"
#include "multihead/text/utf8.h"

namespace mh {

struct Translator::Parts {
  Tokenizer tokenizer;
  Transformer model;
  DType compute;

  // The tokens of a line that the model can read.
  struct Line {
    std::vector<int32_t> ids;
    int64_t tokens = 0;
    bool blank = true;
  };
  Line read(const std::string& text) const;
  std::string write(const std::vector<int32_t>& ids) const { return whole_utf8(tokenizer.decode(ids)); }
};

namespace {

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos; }

// A wrong folder is named as such, not by the file that happens to be read first.
void require_model_folder(const std::string& folder) {
  std::error_code ignored;
  const auto holds = [&](const char* file) { return std::filesystem::exists(folder + "/" + file, ignored); };
  if (holds("model.safetensors") || holds("tokenizer.json")) return;
  fail(ErrorKind::io, "{} {}; expected a folder with model.safetensors and tokenizer.json", printable_path(folder),
       !std::filesystem::exists(folder, ignored)        ? "is not there"
       : std::filesystem::is_directory(folder, ignored) ? "holds no model"
                                                        : "is a file");
}

Transformer packed(const std::string& path, DType compute) {
  Transformer model = load_transformer(path);
  model.pack(compute);
  return model;
}

}  // namespace

Translator Translator::load(const std::string& folder, DType compute) {
  check(compute == DType::f32 || compute == DType::bf16, "translator: products in {}; expected f32 or bf16",
        name(compute));
  require_model_folder(folder);
  const std::string file = folder + "/tokenizer.json";
  const auto parts =
      std::make_shared<Parts>(Parts{Tokenizer::load(file), packed(folder + "/model.safetensors", compute), compute});
  check(parts->tokenizer.size() <= parts->model.config().vocabulary,
        "{}: has {} tokens; expected at most the {} of the model beside it", file, parts->tokenizer.size(),
        parts->model.config().vocabulary);
  return Translator(parts);
}

Translator::Parts::Line Translator::Parts::read(const std::string& text) const {
  Line line;
  line.blank = is_blank(text);
  if (line.blank) return line;
  tokenizer.encode(whole_utf8(text), line.ids);
  line.tokens = static_cast<int64_t>(line.ids.size());
  line.ids.resize(static_cast<size_t>(std::min(line.tokens, model.config().max_length - 1)));
  return line;
}

// `write`: sources to hypotheses.
template <class Parts, class Write>
static std::vector<Translation> translated(const Parts& parts, const std::vector<std::string>& lines,
                                           const Write& write) {
  std::vector<typename Parts::Line> read(lines.size());
  parallel_for(static_cast<int64_t>(lines.size()),
               [&](int64_t n) { read[static_cast<size_t>(n)] = parts.read(lines[static_cast<size_t>(n)]); });
  std::vector<std::vector<int32_t>> sources;
  for (const auto& line : read) {
    if (!line.blank) sources.push_back(line.ids);
  }
  std::vector<std::vector<Hypothesis>> written = write(sources);

  std::vector<Translation> out(lines.size());
  auto next = written.begin();
  for (size_t n = 0; n < lines.size(); ++n) {
    Translation& translation = out[n];
    translation.source_tokens = read[n].tokens;
    translation.cut = read[n].ids.size() < static_cast<size_t>(read[n].tokens);
    if (read[n].blank) {
      translation.candidates.emplace_back();
      continue;
    }
    for (Hypothesis& hypothesis : *next++) {
      const std::string text = parts.write(hypothesis.ids);
      translation.candidates.push_back({std::move(hypothesis), text});
    }
  }
  return out;
}

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines,
                                               const SearchOptions& options) const {
  SearchOptions own = options;
  own.batch.compute = parts_->compute;
  return translated(*parts_, lines, [&](const auto& sources) { return mh::search(parts_->model, sources, own); });
}

std::vector<Translation> Translator::sample(const std::vector<std::string>& lines,
                                            const SamplingOptions& options) const {
  SamplingOptions own = options;
  own.batch.compute = parts_->compute;
  return translated(*parts_, lines, [&](const auto& sources) { return mh::sample(parts_->model, sources, own); });
}

std::string Translator::operator()(const std::string& line) const { return translate({line}).front().text(); }

CrossAttention Translator::cross_attention(const std::string& line, const Candidate& candidate, int64_t layer) const {
  const Transformer& model = parts_->model;
  std::vector<int32_t> source = parts_->read(line).ids, input = candidate.ids, target = candidate.ids;
  source.push_back(model.config().end);
  input.insert(input.begin(), model.config().begin);
  target.push_back(model.config().end);

  Pass pass = Pass::inference(parts_->compute);
  const Memory memory = model.encode(token_batch({source}), pass);
  CrossAttention out;
  out.weights = model.cross_weights(token_batch({input}), memory, layer, pass).select(0, 0);
  for (const int32_t id : source) out.source.push_back(detail::token_text(parts_->tokenizer, id));
  for (const int32_t id : target) out.target.push_back(detail::token_text(parts_->tokenizer, id));
  out.source_words = detail::words_of(parts_->tokenizer, source);
  out.target_words = detail::words_of(parts_->tokenizer, target);
  return out;
}

int64_t Translator::decoder_layers() const { return parts_->model.config().decoder_layers; }
int64_t Translator::heads() const { return parts_->model.config().heads; }

}  // namespace mh
