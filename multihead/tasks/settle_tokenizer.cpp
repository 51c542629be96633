// Loading or learning a tokenizer, and whether it fits the model.
#include "multihead/tasks/settle_tokenizer.h"

#include "multihead/base/error.h"
#include "multihead/tasks/models/text_model.h"
#include "multihead/text/learn_words.h"
#include "multihead/text/train_words.h"

namespace mh::detail {

namespace {

Tokenizer learn(const TaskSetup& setup, const std::vector<std::string>& lines, bool has_ends) {
  const TokenizerConfig& config = setup.tokenizer;
  if (config.kind == TokenizerKind::characters) {
    WordOptions characters{.unit = WordUnit::characters, .vocabulary = static_cast<int32_t>(config.vocabulary)};
    characters.lowercase = config.lowercase;
    characters.min_frequency = config.min_count;
    characters.wraps = !has_ends && !setup.recurrent.family().empty();
    if (!has_ends) {
      const LearnWordsOptions others;
      characters.specials = others.specials;
      characters.unknown = others.unknown;
    }
    return train_words(lines, characters);
  }
  if (config.kind == TokenizerKind::words) {
    LearnWordsOptions words{.min_count = config.min_count, .lowercase = config.lowercase};
    words.wraps = !setup.recurrent.family().empty();
    if (has_ends) words = {config.min_count, config.lowercase, {"<pad>", "<s>", "</s>", "<unk>"}, "<unk>", false};
    return learn_words(lines, words);
  }
  BpeOptions options{.vocabulary = static_cast<int32_t>(config.vocabulary),
                     .prefix_space = !reads_text_as_it_is(setup),
                     .lowercase = config.lowercase,
                     .normalisation = config.normalise};
  if (const auto& on_wait = setup.events.on_wait)
    options.progress = [&](int64_t done, int64_t total) { on_wait("learning the tokenizer", done, total); };
  return train_bpe(lines, options);
}

void require_special(const Tokenizer& tokenizer, const char* token, int32_t expected) {
  const std::optional<int32_t> id = tokenizer.id(token);
  check(id.has_value(), "tokenizer: there is no token {}; expected it with id {}", token, expected);
  check(*id == expected && tokenizer.is_special(*id),
        "tokenizer: the token {} has id {}{}; expected a special one with id {}", token, *id,
        tokenizer.is_special(*id) ? "" : " and is not special", expected);
}

}  // namespace

Tokenizer settle_tokenizer(const TaskSetup& setup, const std::function<std::vector<std::string>()>& lines,
                           bool has_ends) {
  const std::string& path = setup.tokenizer_file.empty() ? setup.tokenizer.path : setup.tokenizer_file;
  const Tokenizer tokenizer = path.empty() ? learn(setup, lines(), has_ends) : Tokenizer::load(path);
  const TransformerConfig& model = setup.model;
  if (has_ends) {
    require_special(tokenizer, "<pad>", model.pad);
    require_special(tokenizer, "<s>", model.begin);
    require_special(tokenizer, "</s>", model.end);
  }
  check(model.vocabulary == 0 || model.vocabulary == tokenizer.size(),
        "config: model.vocabulary is {}, and the tokenizer has {} tokens; expected the same number, or 0",
        model.vocabulary, tokenizer.size());
  return tokenizer;
}

TaskSetup with_tokenizer_of_start(TaskSetup setup) {
  if (setup.tokenizer_file.empty() && setup.tokenizer.path.empty() && is_pretrained_folder(setup.from))
    setup.tokenizer.path = setup.from + "/tokenizer.json";
  return setup;
}

}  // namespace mh::detail
