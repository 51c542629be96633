// Text to tokens, tokens to sentences, sentences to text.
#include "multihead/generate/text/translator.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/base/printable.h"
#include "multihead/generate/search.h"
#include "multihead/generate/text/sentence_reader.h"
#include "multihead/generate/text/translation_model.h"
#include "multihead/generate/text/words.h"
#include "multihead/text/sentences.h"
#include "multihead/text/tokenizer.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

struct Translator::Parts {
  std::unique_ptr<TranslationModel> model;
  detail::SentenceReader reader;
  std::map<std::string, TextTask> tasks;
  DType compute;
  bool ours;

  // A sentence and the tokens of it that the model can read.
  struct Sentence : detail::ReadSentence {
    std::string space{}, text{};
  };
  struct Line {
    std::vector<Sentence> sentences;
    std::string space;  // behind the last
  };
  // Throws: invalid_argument where the text is not UTF-8.
  Line read(const std::string& text, const TextOptions& options, const detail::SourceFrame& frame) const;
  // Throws: as SentenceReader::frame.
  detail::SourceFrame frame(const TextOptions& options) const;
  // With what is said of the languages. Throws: as SentenceReader::target.
  void settle(const TextOptions& options, WritingRules& rules) const;
  // `source` as the encoder reads it, `target` without its end.
  SentenceTokens tokens(const std::vector<int32_t>& source, std::vector<int32_t> target) const;
  CrossAttention looked_at(const std::vector<int32_t>& source, const Hypothesis& written, int64_t layer) const;
};

namespace {

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos; }

}  // namespace

Translator Translator::load(const std::string& folder, DType compute) {
  check(compute == DType::f32 || compute == DType::bf16, "translator: products in {}; expected f32 or bf16",
        name(compute));
  TranslationFolder loaded = load_translation_folder(folder, compute);
  detail::SentenceReader reader(loaded);
  return Translator(std::make_shared<Parts>(
      Parts{std::move(loaded.model), std::move(reader), std::move(loaded.tasks), compute, loaded.ours}));
}

detail::SourceFrame Translator::Parts::frame(const TextOptions& options) const {
  detail::SourceFrame out = reader.frame(options.languages);
  if (!options.prefix.empty()) out.prefix = options.prefix;
  out.most = options.max_source;
  return out;
}

void Translator::Parts::settle(const TextOptions& options, WritingRules& rules) const {
  const int32_t target = reader.target(options.languages);
  if (target >= 0) rules.forced_begin = target;
}

SentenceTokens Translator::Parts::tokens(const std::vector<int32_t>& source, std::vector<int32_t> target) const {
  target.push_back(model->facts().end);
  SentenceTokens out;
  for (const int32_t id : source) out.source.push_back(detail::token_text(reader.tokenizer(), id));
  for (const int32_t id : target) out.target.push_back(detail::token_text(reader.tokenizer(), id));
  out.source_words = detail::words_of(reader.tokenizer(), source);
  out.target_words = detail::words_of(reader.tokenizer(), target);
  return out;
}

Translator::Parts::Line Translator::Parts::read(const std::string& text, const TextOptions& options,
                                                const detail::SourceFrame& frame) const {
  Line line;
  if (is_blank(text)) return line;
  const auto fault = utf8_error(text);
  check(!fault, "translator: byte {} of {} is not UTF-8; expected UTF-8 text", fault.value_or(0) + 1, printable(text));
  const std::vector<SentenceSpan> spans =
      options.split.value_or(ours) ? sentences(text) : std::vector<SentenceSpan>{{{}, text}};
  for (const SentenceSpan& span : spans) {
    Sentence sentence;
    sentence.space = span.space;
    sentence.text = span.text;
    static_cast<detail::ReadSentence&>(sentence) = reader.read(sentence.text, frame);
    if (ours || !sentence.ids.empty()) line.sentences.push_back(std::move(sentence));
  }
  if (!spans.empty())
    line.space = text.substr(static_cast<size_t>(spans.back().text.end() - std::string_view(text).begin()));
  return line;
}

namespace {

using Choices = std::vector<size_t>;  // of every sentence the hypothesis that is taken

// The `most` combinations of hypotheses with the largest sums of scores, best first; of equals the one with the better
// hypotheses in front.
std::vector<Choices> best_choices(const std::vector<std::vector<Hypothesis>>& written, size_t most) {
  struct Partial {
    double sum = 0;
    Choices taken{};
  };
  std::vector<Partial> best{{}};
  for (const auto& hypotheses : written) {
    std::vector<Partial> longer;
    for (const Partial& partial : best) {
      for (size_t n = 0; n < hypotheses.size(); ++n) {
        longer.push_back({partial.sum + hypotheses[n].score, partial.taken});
        longer.back().taken.push_back(n);
      }
    }
    std::stable_sort(longer.begin(), longer.end(), [](const Partial& a, const Partial& b) { return a.sum > b.sum; });
    longer.resize(std::min(longer.size(), most));
    best = std::move(longer);
  }
  std::vector<Choices> out;
  for (Partial& partial : best) out.push_back(std::move(partial.taken));
  return out;
}

std::vector<Choices> same_samples(size_t sentences, size_t samples) {
  std::vector<Choices> out;
  for (size_t n = 0; n < samples; ++n) out.emplace_back(sentences, n);
  return out;
}

void append(Candidate& candidate, TranslatedSentence sentence) {
  candidate.ids.insert(candidate.ids.end(), sentence.ids.begin(), sentence.ids.end());
  candidate.token_scores.insert(candidate.token_scores.end(), sentence.token_scores.begin(),
                                sentence.token_scores.end());
  candidate.score += sentence.score;
  candidate.ended = sentence.ended && (candidate.sentences.empty() || candidate.ended);
  candidate.text += sentence.space + sentence.text;
  candidate.sentences.push_back(std::move(sentence));
}

}  // namespace

// Lines on their way: each is put together by the thread that writes the last of its sentences.
class Translator::Lines {
 public:
  Lines(const Parts& parts, const std::vector<std::string>& lines, const TextOptions& options)
      : parts_(parts),
        options_(options),
        read_(lines.size()),
        written_(lines.size()),
        left_(lines.size()),
        out_(lines.size()) {
    const detail::SourceFrame frame = parts.frame(options);
    parallel_for(static_cast<int64_t>(lines.size()), [&](int64_t n) {
      read_[static_cast<size_t>(n)] = parts.read(lines[static_cast<size_t>(n)], options, frame);
    });
    for (size_t n = 0; n < read_.size(); ++n) {
      left_[n] = read_[n].sentences.size();
      written_[n].resize(read_[n].sentences.size());
      for (size_t s = 0; s < read_[n].sentences.size(); ++s) {
        places_.push_back({n, s});
        sources_.push_back(read_[n].sentences[s].ids);
      }
    }
  }

  struct Place {
    size_t line, sentence;
  };
  const std::vector<Place>& places() const { return places_; }

  // write(sources, on_written) writes all sentences; choose(written) says which hypotheses make the candidates of a
  // line; `mean`: whether a candidate's score is the mean of its sentences' scores, not their sum.
  template <class Write, class Choose>
  std::vector<Translation> run(const Write& write, const Choose& choose, bool mean) {
    for (size_t n = 0; n < read_.size(); ++n)
      if (read_[n].sentences.empty()) finish(n, choose, mean);
    write(sources_, [&](size_t source, const std::vector<Hypothesis>& hypotheses) {
      const Place at = places_[source];
      written_[at.line][at.sentence] = hypotheses;
      if (left_[at.line].fetch_sub(1) == 1) finish(at.line, choose, mean);
    });
    return std::move(out_);
  }

 private:
  template <class Choose>
  void finish(size_t n, const Choose& choose, bool mean) {
    const Parts::Line& line = read_[n];
    Translation& translation = out_[n];
    for (const Parts::Sentence& sentence : line.sentences) {
      translation.source_tokens += sentence.tokens;
      translation.cut |= sentence.ids.size() < static_cast<size_t>(sentence.tokens);
    }
    if (line.sentences.empty()) translation.candidates.emplace_back();
    for (const Choices& choices : line.sentences.empty() ? std::vector<Choices>{} : choose(written_[n])) {
      Candidate candidate;
      for (size_t s = 0; s < choices.size(); ++s) {
        const Hypothesis& hypothesis = written_[n][s][choices[s]];
        const Parts::Sentence& read = line.sentences[s];
        append(candidate, {hypothesis, read.space, read.text, parts_.reader.text(hypothesis.ids), read.ids});
      }
      if (mean) candidate.score /= static_cast<double>(choices.size());
      candidate.text += line.space;
      translation.candidates.push_back(std::move(candidate));
    }
    if (options_.on_line) options_.on_line(n, translation);
  }

  const Parts& parts_;
  const TextOptions& options_;
  std::vector<Parts::Line> read_;
  std::vector<std::vector<std::vector<Hypothesis>>> written_;  // by line, sentence
  std::vector<std::atomic<size_t>> left_;                      // sentences of the line that are not written yet
  std::vector<Place> places_;                                  // of every source
  std::vector<std::vector<int32_t>> sources_;
  std::vector<Translation> out_;
};

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines, const SearchOptions& options,
                                               const TextOptions& text) const {
  SearchOptions own = options;
  own.batch.compute = parts_->compute;
  parts_->settle(text, own.rules);
  const auto write = [&](const auto& sources, const OnWritten& on_written) {
    mh::search(parts_->model->generator(), sources, own, on_written);
  };
  const auto choose = [&](const auto& written) { return best_choices(written, static_cast<size_t>(own.n_best)); };
  return Lines(*parts_, lines, text).run(write, choose, true);
}

std::vector<Translation> Translator::sample(const std::vector<std::string>& lines, const SamplingOptions& options,
                                            const TextOptions& text) const {
  SamplingOptions own = options;
  own.batch.compute = parts_->compute;
  parts_->settle(text, own.rules);
  Lines all(*parts_, lines, text);
  // A line's number says nothing of the sentences of the lines before it.
  for (const Lines::Place& at : all.places())
    own.numbers.push_back(own.first_sentence + at.line + (static_cast<uint64_t>(at.sentence) << 40));
  const auto write = [&](const auto& sources, const OnWritten& on_written) {
    mh::sample(parts_->model->generator(), sources, own, on_written);
  };
  const auto choose = [&](const auto& written) {
    return same_samples(written.size(), static_cast<size_t>(own.samples));
  };
  return all.run(write, choose, false);
}

std::vector<Translation> Translator::write(const std::vector<std::string>& lines, const GenerationConfig& how,
                                           const TextOptions& text) const {
  return how.sample ? sample(lines, how.sampling, text) : translate(lines, how.search, text);
}

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines) const {
  return write(lines, defaults().how, {.prefix = defaults().prefix});
}

std::string Translator::operator()(const std::string& line) const { return translate({line}).front().text(); }

const TextTask& Translator::defaults(std::string_view task) const {
  const auto found = parts_->tasks.find(std::string(task));
  return found != parts_->tasks.end() ? found->second : parts_->tasks.at("");
}

std::string Translator::task_of(const LanguagePair& languages) const { return parts_->reader.task(languages); }
std::vector<std::string> Translator::languages() const { return parts_->reader.languages().names(); }

SentenceTokens Translator::reread(const std::string& text, const Hypothesis& written,
                                  AttentionObserver& observer) const {
  return reread(parts_->reader.read(whole_utf8(text), {}).ids, written, observer);
}

SentenceTokens Translator::reread(std::vector<int32_t> source, const Hypothesis& written,
                                  AttentionObserver& observer) const {
  const TranslationModel& model = *parts_->model;
  std::vector<int32_t> input = written.ids;
  source = parts_->reader.whole(std::move(source));
  input.insert(input.begin(), model.facts().begin);

  Pass pass = Pass::inference(parts_->compute).watched_by(&observer);
  model.reread(token_batch({source}), token_batch({input}), pass);
  return parts_->tokens(source, written.ids);
}

CrossAttention Translator::Parts::looked_at(const std::vector<int32_t>& ids, const Hypothesis& written,
                                            int64_t layer) const {
  const std::vector<int32_t> source = reader.whole(ids);
  std::vector<int32_t> input = written.ids;
  input.insert(input.begin(), model->facts().begin);

  Pass pass = Pass::inference(compute);
  CrossAttention out{tokens(source, written.ids)};
  out.weights = model->looked_at(token_batch({source}), token_batch({input}), layer, pass).to(Device{});
  return out;
}

CrossAttention Translator::cross_attention(const std::string& text, const Hypothesis& written, int64_t layer) const {
  return parts_->looked_at(parts_->reader.read(whole_utf8(text), {}).ids, written, layer);
}

CrossAttention Translator::cross_attention(const TranslatedSentence& sentence, int64_t layer) const {
  if (sentence.source_ids.empty()) return cross_attention(sentence.source, sentence, layer);
  return parts_->looked_at(sentence.source_ids, sentence, layer);
}

std::vector<std::pair<int64_t, int64_t>> Translator::align(const Candidate& candidate, int64_t layer) const {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  int64_t source = 0, target = 0;  // words of the sentences before
  for (const TranslatedSentence& sentence : candidate.sentences) {
    const CrossAttention attention = cross_attention(sentence, layer);
    for (const auto& [i, j] : align_words(attention)) pairs.emplace_back(source + i, target + j);
    source += detail::word_count(attention.source_words);
    target += detail::word_count(attention.target_words);
  }
  return pairs;
}

int64_t Translator::decoder_layers() const { return parts_->model->facts().layers; }
int64_t Translator::heads() const { return parts_->model->facts().heads; }

}  // namespace mh
