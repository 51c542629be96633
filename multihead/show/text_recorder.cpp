// Each kind of folder with its own way from text to a pass.
#include "multihead/show/text_recorder.h"

#include <filesystem>
#include <variant>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/generate/generation_config.h"
#include "multihead/generate/models/pretrained_generator.h"
#include "multihead/generate/search.h"
#include "multihead/generate/text/words.h"
#include "multihead/models/language_model_file.h"
#include "multihead/models/pretrained/folder_facts.h"
#include "multihead/show/record_pretrained.h"
#include "multihead/tasks/data/labelled_text.h"
#include "multihead/tasks/models/labelled_model.h"
#include "multihead/tasks/tag.h"
#include "multihead/tasks/verbs/sentence_modules.h"
#include "multihead/text/learn_words.h"

namespace mh {

namespace {

// Words as Tagger reads them.
Recording record_tagger(const LabelledModel& folder, const std::string& text, AttentionRecorder& recorder) {
  const std::vector<std::string_view> views = words_of(text);
  const std::vector<std::string> words(views.begin(), views.end());
  const WordTokens tokens = encode_words(folder.tokenizer, words, folder.model.max_length());
  check(!tokens.ids.empty(), "record: the text has no token; expected one or more");
  Pass pass = Pass::inference().watched_by(&recorder);
  folder.model.logits(token_batch({tokens.ids}), {}, pass);
  RecordedText shown{"text", {}, {}};
  for (size_t n = 0, word = 0; n < tokens.ids.size(); ++n) {
    while (word + 1 < tokens.first.size() && tokens.first[word + 1] <= static_cast<int64_t>(n)) ++word;
    shown.tokens.push_back(detail::token_text(folder.tokenizer, tokens.ids[n]));
    shown.words.push_back(static_cast<int64_t>(word));
  }
  return {.texts = {std::move(shown)}, .cut = tokens.first.size() < words.size()};
}

// Texts and pairs as Classifier reads them.
Recording record_classifier(const LabelledModel& folder, const RecordInput& input, AttentionRecorder& recorder) {
  check(input.pair || !folder.model.is_pair_model(), "record: the model reads pairs; expected two texts");
  const std::string pair = input.pair.value_or("");
  const auto longest = folder.model.max_length();
  Encoded encoded = encode_text(folder.tokenizer, input.text, pair, 0);
  check(encoded.offsets.size() == encoded.ids.size(), "record: the text has no token; expected one or more");
  const bool cut = static_cast<int64_t>(encoded.ids.size()) > longest;
  if (cut) encoded = encode_text(folder.tokenizer, input.text, pair, longest);
  Pass pass = Pass::inference().watched_by(&recorder);
  folder.model.logits(token_batch({encoded.ids}),
                      tensor<int32_t>(encoded.types, {static_cast<int64_t>(encoded.types.size())}), pass);
  return {.texts = {recorded_text("text", folder.tokenizer, encoded, input)}, .cut = cut};
}

Recording record_labelled(const LabelledModel& folder, const RecordInput& input) {
  AttentionRecorder recorder;
  Recording out = folder.model.own()->config().head.pooling == Pooling::none
                      ? record_tagger(folder, input.text, recorder)
                      : record_classifier(folder, input, recorder);
  out.layers = std::move(recorder.layers);
  return out;
}

}  // namespace

struct TextRecorder::Parts {
  struct PretrainedFolder {
    Tokenizer tokenizer;
    Pretrained model;
    GenerationConfig how;

    Recording record_text(RecordInput input) const {
      if (model.architecture().cross_attention && std::holds_alternative<std::monostate>(input.written))
        input.written = own_words(input);
      return record(model, tokenizer, input);
    }

    std::vector<int32_t> own_words(const RecordInput& input) const {
      const PretrainedGenerator generator(model, how.decoder_start);
      const int64_t longest = model.architecture().embedding ? model.architecture().embedding->max_positions : 0;
      Encoded source = tokenizer.encode_input(input.text);
      if (longest > 0 && static_cast<int64_t>(source.ids.size()) > longest)
        source = tokenizer.encode_input(input.text, {.max_length = longest});
      const Prompts prompts{source.ids};
      const auto written =
          how.sample ? sample(generator, prompts, how.sampling) : search(generator, prompts, how.search);
      return written.front().front().ids;
    }
  };

  std::variant<PretrainedFolder, LanguageModelFolder, LabelledModel> folder;
};

void check_recorded(const std::string& folder) {
  const FolderFacts facts = folder_facts(folder);
  if (facts.layout == FolderFacts::Layout::ours && (facts.kind == "rnn" || facts.kind == "lstm" || facts.kind == "gru"))
    fail(ErrorKind::unsupported, "{}: is a recurrent model, whose attention is not recorded; expected a Transformer",
         printable_path(folder));
}

TextRecorder TextRecorder::load(const std::string& folder) {
  std::error_code ignored;
  const bool modules = std::filesystem::exists(folder + "/modules.json", ignored);
  const std::string own = modules ? read_sentence_modules(folder).model_folder : folder;
  check_recorded(own);
  const FolderFacts facts = folder_facts(own);
  const auto made = [](auto parts) { return TextRecorder(std::make_shared<const Parts>(Parts{std::move(parts)})); };
  if (facts.layout == FolderFacts::Layout::hugging_face) {
    Pretrained model = Pretrained::load(own);
    if (model.architecture().patches)
      fail(ErrorKind::unsupported, "{}: is a {}, which reads images; expected a model that reads text",
           printable_path(folder), facts.description());
    return made(Parts::PretrainedFolder{Tokenizer::load(own), std::move(model), load_generation_config(own)});
  }
  if (facts.head == HeadKind::causal_lm) return made(load_language_model(own));
  if (facts.head == HeadKind::seq2seq_lm)
    fail(ErrorKind::unsupported, "{}: is a translator of our own; expected a model that reads one text",
         printable_path(folder));
  LabelledModel model = load_labelled_model(own, facts.kind);
  model.model.pack(DType::f32);
  return made(std::move(model));
}

Recording TextRecorder::operator()(const RecordInput& input) const {
  const auto no_decoder = [&] {
    check(std::holds_alternative<std::monostate>(input.written),
          "record: the model has no decoder behind an encoder; expected nothing that it has written");
  };
  if (const auto* folder = std::get_if<Parts::PretrainedFolder>(&parts_->folder)) return folder->record_text(input);
  no_decoder();
  if (const auto* folder = std::get_if<LanguageModelFolder>(&parts_->folder))
    return record(folder->model, folder->tokenizer, input.text);
  return record_labelled(std::get<LabelledModel>(parts_->folder), input);
}

}  // namespace mh
