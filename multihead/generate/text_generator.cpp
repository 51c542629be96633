// Prompts to tokens, tokens to text.
#include "multihead/generate/text_generator.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/generate/search.h"
#include "multihead/generate/text_stream.h"
#include "multihead/models/language_model_file.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

struct TextGenerator::Parts {
  Tokenizer tokenizer;
  std::shared_ptr<const void> model;  // what the generator reads
  std::unique_ptr<const Generator> generator;
  GenerationConfig defaults;
  DType compute;
};

namespace {

using Texts = std::vector<std::vector<Continuation>>;

struct OurModel {
  explicit OurModel(DecoderOnly given) : model(std::move(given)) {}
  DecoderOnly model;
};

std::vector<int32_t> tokens_of(const Tokenizer& tokenizer, const std::string& prompt) {
  const auto fault = utf8_error(prompt);
  check(!fault, "generate: byte {} of {} is not UTF-8; expected UTF-8 text", fault.value_or(0) + 1, printable(prompt));
  return tokenizer.encode(prompt);
}

// The text of each prompt on its way.
class Streams {
 public:
  Streams(const Tokenizer& tokenizer, const Prompts& prompts, const OnText& on_text) : on_text_(on_text) {
    for (const auto& prompt : prompts) streams_.emplace_back(tokenizer, prompt);
  }
  void add(size_t prompt, int32_t token) { pass_on(prompt, streams_[prompt].add(token)); }
  void end() {
    for (size_t n = 0; n < streams_.size(); ++n) pass_on(n, streams_[n].rest());
  }

 private:
  void pass_on(size_t prompt, const std::string& text) const {
    if (!text.empty()) on_text_(prompt, text);
  }
  const OnText& on_text_;
  std::vector<detail::TextStream> streams_;
};

std::string text_of(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids) {
  detail::TextStream stream(tokenizer, prompt);
  std::string text;
  for (const int32_t id : ids) text += stream.add(id);
  return text + stream.rest();
}

}  // namespace

TextGenerator TextGenerator::load(const std::string& folder, DType compute) {
  check(compute == DType::f32 || compute == DType::bf16, "text generator: products in {}; expected f32 or bf16",
        name(compute));
  LanguageModelFolder loaded = load_language_model(folder);
  loaded.model.pack(compute);
  const auto model = std::make_shared<OurModel>(std::move(loaded.model));
  const auto parts = std::make_shared<Parts>();
  parts->tokenizer = std::move(loaded.tokenizer);
  parts->generator = std::make_unique<DecoderOnlyGenerator>(model->model);
  parts->model = model;
  parts->defaults = {.sample = true, .search = {.beam = 1}};
  parts->compute = compute;
  return TextGenerator(parts);
}

const GenerationConfig& TextGenerator::defaults() const { return parts_->defaults; }

std::vector<std::vector<Continuation>> TextGenerator::write(const std::vector<std::string>& prompts,
                                                            const GenerationConfig& how, const OnText& on_text) const {
  Prompts ids;
  for (const std::string& prompt : prompts) ids.push_back(tokens_of(parts_->tokenizer, prompt));
  Streams streams(parts_->tokenizer, ids, on_text);
  GenerationConfig own = how;
  own.search.batch.compute = own.sampling.batch.compute = parts_->compute;
  if (on_text)
    own.search.on_token = own.sampling.on_token = [&](size_t prompt, int32_t token) { streams.add(prompt, token); };
  const auto written =
      own.sample ? sample(*parts_->generator, ids, own.sampling) : search(*parts_->generator, ids, own.search);
  if (on_text) streams.end();
  Texts out(prompts.size());
  for (size_t n = 0; n < prompts.size(); ++n)
    for (const Hypothesis& hypothesis : written[n])
      out[n].push_back({hypothesis, text_of(parts_->tokenizer, ids[n], hypothesis.ids)});
  return out;
}

std::string TextGenerator::operator()(const std::string& prompt) const {
  return write({prompt}, defaults()).front().front().text;
}

}  // namespace mh
