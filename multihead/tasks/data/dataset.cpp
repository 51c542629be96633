// From files to pairs of text, and from those to token ids.
#include "multihead/tasks/data/dataset.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/io/hash.h"
#include "multihead/tasks/data/hold_out.h"
#include "multihead/tasks/data/text_file.h"
#include "multihead/tasks/data/tsv_file.h"

namespace mh {

namespace {

constexpr int64_t kPairsPerTask = 1024;

int64_t count_lines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n') + (!text.empty() && text.back() != '\n' ? 1 : 0);
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\v\f") == std::string_view::npos; }

void count(PairReport::Rule& rule, int64_t line) {
  if (rule.count++ == 0) rule.first_line = line;
}

void require_pairs(const PairReport& report) {
  check(report.lines > 0, "{}: empty; expected sentence pairs", report.name);
  std::vector<std::string> why = report.sentences();
  check(report.kept > 0, "{}: no sentence pair is left; {}", report.name, fmt::join(why, "; "));
}

}  // namespace

std::vector<std::string> PairReport::sentences() const {
  std::vector<std::string> out;
  const auto say = [&](const Rule& rule, const std::string& why) {
    if (rule.count == 0) return;
    out.push_back(skipped_sentence(name, rule.count, lines, rule.first_line, why));
  };
  say(empty, "an empty side");
  if (broken.count() > 0) out.push_back(broken.sentence(name, lines));
  say(long_line, fmt::format("more than {} bytes", kLongestLine));
  say(long_tokens, fmt::format("more than {} tokens on a side", max_length));
  if (extra_columns.count > 0)
    out.push_back(
        fmt::format("{}: {} of {} lines have more than {} columns (the first is line {}); only columns {} and "
                    "{} are read",
                    name, extra_columns.count, lines, std::max(source_column, target_column), extra_columns.first_line,
                    source_column, target_column));
  return out;
}

PairText::PairText(const PairFiles& files) {
  files.target.empty() ? read_tsv(files) : read_two(files);
  require_pairs(report_);
}

std::string_view PairText::open(const std::string& path) {
  const TextFile file = read_text(path);
  files_.push_back(file.keeper);
  return file.text;
}

PairText PairText::hold_out(int64_t pairs) {
  std::vector<std::string_view> sources;
  for (const Pair& pair : pairs_) sources.push_back(pair.source);
  const std::vector<bool> goes = detail::held_out(sources, pairs, report_.name, "pairs");

  PairText out;
  out.files_ = files_;
  out.report_.name = fmt::format("{} (held out)", report_.name);
  out.report_.lines = report_.lines;
  std::vector<Pair> kept;
  for (size_t i = 0; i < pairs_.size(); ++i) (goes[i] ? out.pairs_ : kept).push_back(pairs_[i]);
  pairs_ = std::move(kept);
  report_.kept = size();
  out.report_.kept = out.size();
  return out;
}

void PairText::add(std::string_view source, std::string_view target) {
  pairs_.push_back({source, target, report_.lines});
  ++report_.kept;
}

// By the rules that need no column. `bytes`: of the longer line.
bool PairText::skips_line(bool blank, int64_t bytes) {
  if (bytes > kLongestLine) return count(report_.long_line, report_.lines), true;
  if (blank) return count(report_.empty, report_.lines), true;
  return false;
}

void PairText::read_tsv(const PairFiles& files) {
  check(files.source_column >= 1 && files.target_column >= 1, "pairs: columns {} and {}; expected 1 or more",
        files.source_column, files.target_column);
  report_.name = files.source;
  report_.source_column = files.source_column;
  report_.target_column = files.target_column;
  const int64_t columns[] = {files.source_column, files.target_column};
  const auto last = std::max(files.source_column, files.target_column);
  TsvFile file(files.source);
  files_.push_back(file.keeper());
  while (file.next()) {
    const std::string_view line = file.line();
    ++report_.lines;
    if (skips_line(is_blank(line), static_cast<int64_t>(line.size()))) continue;
    if (std::count(line.begin(), line.end(), '\t') >= last) count(report_.extra_columns, report_.lines);
    const bool whole = file.split(columns);
    report_.broken = file.broken();
    if (!whole) continue;
    const std::string_view source = file.fields()[0], target = file.fields()[1];
    if (!skips_line(is_blank(source) || is_blank(target), 0)) add(source, target);
  }
}

void PairText::read_two(const PairFiles& files) {
  std::string_view sources = open(files.source), targets = open(files.target);
  report_.name = fmt::format("{} and {}", files.source, files.target);
  const int64_t lines = count_lines(sources), others = count_lines(targets);
  check(lines == others, "{} has {} lines and {} has {}; expected the same number, line by line", files.source, lines,
        files.target, others);
  while (!sources.empty() && !targets.empty()) {
    const std::string_view source = next_line(sources), target = next_line(targets);
    ++report_.lines;
    if (skips_line(is_blank(source) || is_blank(target), static_cast<int64_t>(std::max(source.size(), target.size()))))
      continue;
    if (!report_.broken.skips(source, report_.lines) && !report_.broken.skips(target, report_.lines))
      add(source, target);
  }
}

Dataset::Dataset(const PairText& text, const Tokenizer& tokenizer, int64_t max_length) : report_(text.report()) {
  check(max_length >= 2, "Dataset: max_length is {}; expected a token and its end, 2 or more", max_length);
  struct Part {
    std::vector<int32_t> ids;
    std::vector<int64_t> starts;  // source and target of each pair in turn, in `ids`
  };
  std::vector<Part> parts(static_cast<size_t>((text.size() + kPairsPerTask - 1) / kPairsPerTask));
  parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t task) {
    Part& part = parts[static_cast<size_t>(task)];
    const int64_t end = std::min(text.size(), (task + 1) * kPairsPerTask);
    for (int64_t i = task * kPairsPerTask; i < end; ++i) {
      for (const std::string_view side : {text.source(i), text.target(i)}) {
        part.starts.push_back(static_cast<int64_t>(part.ids.size()));
        tokenizer.encode(side, part.ids);
      }
    }
    part.starts.push_back(static_cast<int64_t>(part.ids.size()));
  });

  report_.max_length = max_length;
  starts_.push_back(0);
  for (int64_t i = 0; i < text.size(); ++i) {
    const Part& part = parts[static_cast<size_t>(i / kPairsPerTask)];
    const int64_t* starts = part.starts.data() + 2 * (i % kPairsPerTask);
    const int64_t source = starts[1] - starts[0], target = starts[2] - starts[1];
    if (std::max(source, target) >= max_length) {
      count(report_.long_tokens, text.line(i));
      --report_.kept;
      continue;
    }
    ids_.insert(ids_.end(), part.ids.begin() + starts[0], part.ids.begin() + starts[2]);
    starts_.push_back(starts_.back() + source);
    starts_.push_back(starts_.back() + target);
    text_pairs_.push_back(i);
    source_tokens_ += source + 1;
    target_tokens_ += target + 1;
  }
  require_pairs(report_);
}

std::string Dataset::digest() const {
  detail::Hash hash;
  hash.add(std::as_bytes(std::span(starts_)));
  hash.add(std::as_bytes(std::span(ids_)));
  return hash.digits();
}

}  // namespace mh
