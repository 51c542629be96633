// Prompts to tokens, tokens to text.
#include "multihead/generate/text/text_generator.h"

#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/generate/models/pretrained_generator.h"
#include "multihead/generate/search.h"
#include "multihead/generate/text/text_stream.h"
#include "multihead/models/language_model_file.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

struct TextGenerator::Parts {
  Tokenizer tokenizer;
  std::shared_ptr<const void> model;  // what the generator reads
  std::unique_ptr<const Generator> generator;
  GenerationConfig defaults;
  DType compute;
  bool ours = true, continues = true;

  void load_ours(const std::string& folder);
  void load_pretrained(const std::string& folder);
  std::vector<int32_t> tokens(const std::string& prompt) const;
  // The text that stands before what is written.
  const std::vector<int32_t>& before(const std::vector<int32_t>& prompt) const {
    static const std::vector<int32_t> kNothing;
    return continues ? prompt : kNothing;
  }
};

std::vector<int32_t> TextGenerator::Parts::tokens(const std::string& prompt) const {
  const auto fault = utf8_error(prompt);
  check(!fault, "generate: byte {} of {} is not UTF-8; expected UTF-8 text", fault.value_or(0) + 1, printable(prompt));
  return ours ? tokenizer.encode(prompt) : tokenizer.encode_input(prompt).ids;
}

namespace {

using Texts = std::vector<std::vector<Continuation>>;

// The text of each prompt on its way.
class Streams {
 public:
  Streams(const Tokenizer& tokenizer, const OnText& on_text) : tokenizer_(tokenizer), on_text_(on_text) {}
  void begin(const std::vector<int32_t>& before) { streams_.emplace_back(tokenizer_, before); }
  void add(size_t prompt, int32_t token) { pass_on(prompt, streams_[prompt].add(token)); }
  void end() {
    for (size_t n = 0; n < streams_.size(); ++n) pass_on(n, streams_[n].rest());
  }

 private:
  void pass_on(size_t prompt, const std::string& text) const {
    if (!text.empty()) on_text_(prompt, text);
  }
  const Tokenizer& tokenizer_;
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
  const auto parts = std::make_shared<Parts>();
  parts->compute = compute;
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/config.json", ignored)) {
    parts->load_pretrained(folder);
  } else {
    parts->load_ours(folder);
  }
  return TextGenerator(parts);
}

void TextGenerator::Parts::load_pretrained(const std::string& folder) {
  const FolderFacts facts = folder_facts(folder);
  if (facts.head != HeadKind::causal_lm && facts.head != HeadKind::seq2seq_lm)
    fail(ErrorKind::invalid_argument, "{}: is a {}; expected a model that writes text: {}", printable_path(folder),
         facts.description(), facts.advice());
  const auto loaded = std::make_shared<Pretrained>(Pretrained::load(folder, {.compute = compute}));
  defaults = load_generation_config(folder);
  generator = std::make_unique<PretrainedGenerator>(*loaded, defaults.decoder_start);
  model = loaded;
  tokenizer = Tokenizer::load(folder);
  ours = false;
  continues = !loaded->architecture().cross_attention;
}

void TextGenerator::Parts::load_ours(const std::string& folder) {
  LanguageModelFolder loaded = load_language_model(folder);
  loaded.model.pack(compute);
  const auto kept = std::make_shared<DecoderOnly>(std::move(loaded.model));
  tokenizer = std::move(loaded.tokenizer);
  generator = std::make_unique<DecoderOnlyGenerator>(*kept);
  model = kept;
  defaults = {.sample = true, .search = {.beam = 1}};
}

bool TextGenerator::continues() const { return parts_->continues; }

const GenerationConfig& TextGenerator::defaults() const { return parts_->defaults; }

std::vector<std::vector<Continuation>> TextGenerator::write(const std::vector<std::string>& prompts,
                                                            const GenerationConfig& how, const OnText& on_text) const {
  Prompts ids;
  for (const std::string& prompt : prompts) ids.push_back(parts_->tokens(prompt));
  Streams streams(parts_->tokenizer, on_text);
  for (const auto& prompt : ids) streams.begin(parts_->before(prompt));
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
      out[n].push_back({hypothesis, text_of(parts_->tokenizer, parts_->before(ids[n]), hypothesis.ids)});
  return out;
}

std::string TextGenerator::operator()(const std::string& prompt) const {
  return write({prompt}, defaults()).front().front().text;
}

}  // namespace mh
