// Languages and special tokens around a sentence.
#include "multihead/generate/text/sentence_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/text/unicode/utf8.h"

namespace mh::detail {

namespace {

constexpr std::string_view kTranslation = "translation_";

}  // namespace

SentenceReader::SentenceReader(const TranslationFolder& folder)
    : tokenizer_(folder.tokenizer), model_(*folder.model), ours_(folder.ours), tasks_(folder.tasks) {
  if (!ours_) languages_ = Languages(tokenizer_);
}

std::string SentenceReader::task(const LanguagePair& pair) const {
  if (pair.to.empty()) return "";
  const std::string end = "_to_" + pair.to;
  for (const auto& [name, config] : tasks_)
    if (name.starts_with(kTranslation) && name.ends_with(end) &&
        (pair.from.empty() || name == std::string(kTranslation) + pair.from + end))
      return name;
  return "";
}

SourceFrame SentenceReader::frame(const LanguagePair& pair) const {
  SourceFrame out;
  if (!pair.given()) return out;
  if (languages_.empty()) {
    const std::string named = task(pair);
    std::vector<std::string> known;
    for (const auto& [name, config] : tasks_)
      if (name.starts_with(kTranslation)) known.push_back(name.substr(kTranslation.size()));
    if (named.empty() && known.empty())
      fail(ErrorKind::invalid_argument,
           "translator: the model has no tokens of languages; expected none to be named, not {} to {}",
           printable(pair.from), printable(pair.to));
    if (named.empty())
      fail(ErrorKind::invalid_argument, "translator: no task of the model is {} to {}; expected one of {}",
           printable(pair.from), printable(pair.to), fmt::join(known, ", "));
    out.prefix = tasks_.at(named).prefix;
    return out;
  }
  check(pair.from.empty() || !languages_.lead_the_source(),
        "translator: the model is told the language wanted alone; expected none for the source, not {}",
        printable(pair.from));
  if (!pair.from.empty()) out.language = languages_.token(pair.from);
  if (!pair.to.empty() && languages_.lead_the_source()) out.first = languages_.token(pair.to);
  return out;
}

int32_t SentenceReader::target(const LanguagePair& pair) const {
  if (pair.to.empty() || languages_.empty() || languages_.lead_the_source()) return -1;
  const int32_t wanted = languages_.token(pair.to), begin = model_.facts().begin;
  if (!languages_.has(begin)) return wanted;
  check(wanted == begin, "translator: the model writes {} alone; expected that language, not {}",
        tokenizer_.token(begin), printable(pair.to));
  return -1;
}

Encoded SentenceReader::encoded(const std::string& text, const SourceFrame& frame, int64_t most) const {
  EncodeOptions options;
  if (most > 0) options.max_length = std::max<int64_t>(1, most - (frame.first >= 0 ? 1 : 0));
  return tokenizer_.encode_input(text, options);
}

std::vector<int32_t> SentenceReader::framed(const Encoded& encoded, const SourceFrame& frame) const {
  std::vector<int32_t> ids = encoded.ids;
  if (frame.language >= 0) {
    bool placed = false;
    for (size_t n = 0; n < ids.size(); ++n) {
      if (encoded.sequences[n] >= 0 || !languages_.has(ids[n])) continue;
      ids[n] = frame.language;
      placed = true;
    }
    if (!placed) ids.insert(ids.begin(), frame.language);
  }
  if (frame.first >= 0) ids.insert(ids.begin(), frame.first);
  return ids;
}

ReadSentence SentenceReader::read(const std::string& sentence, const SourceFrame& frame) const {
  ReadSentence out;
  const std::string text = frame.prefix + sentence;
  if (ours_) {
    out.ids = tokenizer_.encode(text);
    out.tokens = static_cast<int64_t>(out.ids.size());
    const int64_t most = model_.facts().max_length - 1;
    out.ids.resize(static_cast<size_t>(std::min({out.tokens, most, frame.most > 0 ? frame.most : most})));
    return out;
  }
  out.ids = framed(encoded(text, frame, 0), frame);
  out.tokens = static_cast<int64_t>(out.ids.size());
  const int64_t reads = model_.generator().limits().most;
  const int64_t most = frame.most > 0 ? std::min(frame.most, reads) : reads;
  if (out.tokens <= most) return out;
  out.ids = framed(encoded(text, frame, most), frame);
  out.ids.resize(std::min(out.ids.size(), static_cast<size_t>(most)));
  return out;
}

std::vector<int32_t> SentenceReader::whole(std::vector<int32_t> ids) const {
  if (ours_) ids.push_back(model_.facts().end);
  return ids;
}

std::string SentenceReader::text(const std::vector<int32_t>& ids) const {
  std::vector<int32_t> tokens;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(tokens), [&](int32_t id) { return id < tokenizer_.size(); });
  return whole_utf8(tokenizer_.decode(tokens));
}

}  // namespace mh::detail
