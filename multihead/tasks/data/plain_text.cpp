// From a file to lines, and from those to windows of token ids.
#include "multihead/tasks/data/plain_text.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/io/hash.h"
#include "multihead/tasks/data/dataset.h"
#include "multihead/tasks/data/text_file.h"

namespace mh {

namespace {

constexpr int64_t kLinesPerTask = 1024;
constexpr std::string_view kWhite = " \t\r\v\f";

}  // namespace

PlainText::PlainText(const std::string& path, TextLines lines) : name_(path) {
  const TextFile file = read_text(path);
  file_ = file.keeper;
  BrokenLines broken;
  int64_t number = 0, long_lines = 0, first_long = 0;
  bool has_text = false;
  for (std::string_view text = file.text; !text.empty();) {
    const std::string_view line = next_line(text);
    ++number;
    const bool blank = line.find_first_not_of(kWhite) == std::string_view::npos;
    if (blank && lines == TextLines::sentences) continue;
    if (static_cast<int64_t>(line.size()) > kLongestLine) {
      if (long_lines++ == 0) first_long = number;
      continue;
    }
    if (broken.skips(line, number)) continue;
    lines_.push_back(line);
    has_text = has_text || !blank;
  }
  if (broken.count() > 0) report_.push_back(broken.sentence(path, number));
  if (long_lines > 0)
    report_.push_back(
        skipped_sentence(path, long_lines, number, first_long, fmt::format("more than {} bytes", kLongestLine)));
  check(has_text, "{}: holds no text{}{}", path, report_.empty() ? "" : "; ", fmt::join(report_, "; "));
}

int64_t PlainText::lines_of_share(double share) const {
  const double wanted = share * static_cast<double>(bytes());
  int64_t lines = 0, sum = 0;
  while (lines < size() / 2 && static_cast<double>(sum) < wanted)
    sum += static_cast<int64_t>(lines_[static_cast<size_t>(size() - ++lines)].size()) + 1;
  return std::max<int64_t>(1, lines);
}

PlainText PlainText::hold_out(int64_t lines) {
  check(lines >= 1 && lines <= size() / 2, "{}: {} lines are to be held out; expected 1 to half of the {} there are",
        name_, lines, size());
  PlainText out;
  out.file_ = file_;
  out.name_ = name_ + " (held out)";
  out.lines_.assign(lines_.end() - lines, lines_.end());
  lines_.resize(lines_.size() - static_cast<size_t>(lines));
  return out;
}

int64_t PlainText::bytes() const {
  int64_t sum = 0;
  for (const std::string_view line : lines_) sum += static_cast<int64_t>(line.size()) + 1;
  return sum;
}

int64_t PlainText::words() const {
  int64_t sum = 0;
  for (const std::string_view line : lines_) {
    for (size_t at = line.find_first_not_of(kWhite); at != std::string_view::npos;) {
      ++sum;
      at = line.find_first_not_of(kWhite, std::min(line.find_first_of(kWhite, at), line.size()));
    }
  }
  return sum;
}

int32_t line_break_of(const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids = tokenizer.encode("\n");
  check(
      ids.size() == 1 && tokenizer.decode(ids) == "\n",
      "config: data.lines is \"text\", and the tokenizer makes {} of a line's break; expected one token for it alone, "
      "as those learned with tokenizer.kind \"characters\" or \"bpe\" have",
      ids.empty()       ? "nothing"
      : ids.size() == 1 ? "another token"
                        : fmt::format("{} tokens", ids.size()));
  return ids.front();
}

TextWindows::TextWindows(const PlainText& text, const Tokenizer& tokenizer, const Options& options) {
  check(options.longest >= 1, "TextWindows: windows of {} tokens; expected 1 or more", options.longest);
  check(options.stride >= 0 && options.stride <= options.longest,
        "TextWindows: a stride of {} with windows of {} tokens; expected 0 to that", options.stride, options.longest);
  struct Part {
    std::vector<int32_t> ids;
    std::vector<int64_t> ends;  // of each line, in `ids`
  };
  std::vector<Part> parts(static_cast<size_t>((text.size() + kLinesPerTask - 1) / kLinesPerTask));
  parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t task) {
    Part& part = parts[static_cast<size_t>(task)];
    const int64_t last = std::min(text.size(), (task + 1) * kLinesPerTask);
    for (int64_t i = task * kLinesPerTask; i < last; ++i) {
      tokenizer.encode(text.lines()[static_cast<size_t>(i)], part.ids);
      part.ids.push_back(options.end);
      part.ends.push_back(static_cast<int64_t>(part.ids.size()));
    }
  });
  starts_.push_back(0);
  const int64_t stride = options.stride == 0 ? options.longest : options.stride;
  const auto cut_up_to = [&](int64_t end) {
    for (int64_t begin = starts_.back(); starts_.back() < end; begin += stride) {
      begins_.push_back(begin);
      starts_.push_back(std::min(end, begin + options.longest));
    }
  };
  for (const Part& part : parts) {
    const auto before = static_cast<int64_t>(ids_.size());
    ids_.insert(ids_.end(), part.ids.begin(), part.ids.end());
    if (!options.packed)
      for (const int64_t end : part.ends) cut_up_to(before + end);
  }
  cut_up_to(tokens());
}

std::string TextWindows::digest() const {
  detail::Hash hash;
  hash.add(std::as_bytes(std::span(starts_)));
  hash.add(std::as_bytes(std::span(ids_)));
  return hash.digits();
}

}  // namespace mh
