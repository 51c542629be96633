// `multihead classify`: lines or files in, a label and its probability out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/line_reader.h"
#include "cli/lines_through.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/threads_flag.h"
#include "cli/verbs.h"
#include "cli/verbs/show_page.h"
#include "multihead/base/error.h"
#include "multihead/tasks/pixels/pixel_model.h"
#include "multihead/tasks/results/result_json.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tasks/verbs/zero_shot.h"

namespace mh::cli {
namespace {

constexpr const char* kClassifyEnd =
    "A line of a model that reads pairs holds both texts, with a tab between them. A line that is not UTF-8 gets an\n"
    "empty line.\n"
    "With --labels the model is one that tells what follows from a text (NLI), and the labels are any words, with commas\n"
    "between them: the line is compared with the hypothesis that each label makes (--template).\n"
    "A model that reads pictures (a ViT or DeiT) takes the names of PNG, JPEG or PPM files, as arguments or as lines; one\n"
    "that reads recordings those of WAV files. A file that cannot be read gets an empty line, and the exit code is 1.\n"
    "\n"
    "  multihead train configs/classify/mr.toml\n"
    "  echo 'A film that nobody needs.' | multihead classify models/mr\n"
    "  multihead eval models/mr data/mr/test.tsv --confusion\n"
    "  echo 'Rome won by three goals.' | multihead classify models/bart-large-mnli --labels sport,money,science\n"
    "  multihead classify models/shapes one.png two.jpg";

constexpr size_t kLinesClassifiedAtOnce = 1024;  // that are read before the first is answered, where they are there

struct ClassifyChoice {
  std::string model, precision = "f32";
  std::optional<std::string> page;
  std::vector<std::string> labels{};
  ZeroShotOptions zero_shot{};
  std::vector<std::string> files;
  bool all = false, json = false;
};

std::string line_of(const ClassifyChoice& choice, const Classification& one, const std::vector<std::string>& labels) {
  if (choice.json) return to_json(one, choice.all ? std::span(labels) : std::span<const std::string>());
  if (!choice.all) return fmt::format("{}\t{:.4f}", one.label, one.score);
  std::string out;
  for (const size_t n : by_score(one))
    out += fmt::format("{}{}\t{:.4f}", out.empty() ? "" : "\t", labels[n], one.scores[n]);
  return out;
}

// One file at a time: the first answer is there before the last file is read.
bool answer_file(const ClassifyChoice& choice, const PixelModel& model, const std::string& file) {
  std::string out;
  try {
    const Tensor one[] = {model.form().read(file)};
    out = line_of(choice, model.classify(one).front(), model.labels().names());
  } catch (const Error& error) {
    mention("multihead classify: {}", error.what());
  }
  fmt::print("{}\n", out);
  flush_output();
  return !out.empty();
}

int run_files(const ClassifyChoice& choice) {
  const PixelModel model = PixelModel::load(choice.model, precision_named(choice.precision));
  bool all_read = true;
  for (const std::string& file : choice.files) all_read = answer_file(choice, model, file) && all_read;
  if (!choice.files.empty()) return all_read ? kDone : kFailed;
  refuse_stdin_as_stdout();
  if (isatty(STDIN_FILENO) == 1) mention("Type the name of a file and press Enter; Ctrl-D ends.");
  LineReader reader(STDIN_FILENO);
  for (auto lines = reader.take(1); !lines.empty(); lines = reader.take(1))
    all_read = answer_file(choice, model, lines.front().text) && all_read;
  return all_read ? kDone : kFailed;
}

using Classify = std::function<std::vector<Classification>(std::span<const std::string> texts)>;

void classify_lines(const ClassifyChoice& choice, const std::vector<std::string>& labels, const Classify& classify) {
  FirstPage page(choice.page, choice.model, "classify");
  lines_through("classify", kLinesClassifiedAtOnce, [&](std::span<const LineReader::Line> lines, int64_t first) {
    std::vector<std::string> texts;
    for (const LineReader::Line& line : lines)
      if (line.skipped.empty()) texts.push_back(line.text);
    const std::vector<Classification> found = classify(texts);
    size_t next = 0;
    std::string out;
    for (size_t n = 0; n < lines.size(); ++n) {
      if (lines[n].skipped.empty()) {
        if (found[next].cut && lines[n].left_out == 0) mention_cut("classify", first + static_cast<int64_t>(n));
        out += line_of(choice, found[next++], labels);
      }
      out += '\n';
    }
    for (const std::string& text : texts) page.take(text_or_pair(text));
    return out;
  });
}

// "sport, money" is two labels without the space.
std::vector<std::string> trimmed_labels(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& each : given) {
    const size_t begin = each.find_first_not_of(" \t"), end = each.find_last_not_of(" \t");
    if (begin != std::string::npos) out.push_back(each.substr(begin, end - begin + 1));
  }
  return out;
}

int classify(const ClassifyChoice& choice, bool zero_shot) {
  const std::string kind = model_kind_of_folder(choice.model);
  if (kind == "image_class" || kind == "speech_class") {
    if (zero_shot) throw CLI::ValidationError("--labels", "is for models that read text; this one does not");
    if (choice.page) throw CLI::ValidationError("--show", "is for models that read text; this one does not");
    return run_files(choice);
  }
  if (!choice.files.empty()) throw CLI::ValidationError("FILE", "this model reads lines from stdin; expected no files");
  refuse_stdin_as_stdout();
  const DType compute = precision_named(choice.precision);
  if (zero_shot) {
    const std::vector<std::string> labels = trimmed_labels(choice.labels);
    const ZeroShotClassifier classifier = ZeroShotClassifier::load(choice.model, compute);
    mention_unused("classify", choice.model, classifier.unused());
    classifier(std::span<const std::string>(), labels, choice.zero_shot);  // refuses what it cannot do before any line
    classify_lines(choice, labels,
                   [&](std::span<const std::string> texts) { return classifier(texts, labels, choice.zero_shot); });
    return kDone;
  }
  const Classifier classifier = Classifier::load(choice.model, compute);
  mention_unused("classify", choice.model, classifier.unused());
  classify_lines(choice, classifier.labels(), classifier);
  return kDone;
}

}  // namespace

void add_classify(CLI::App& app, int& code) {
  CLI::App* verb =
      app.add_subcommand("classify", "say of lines from stdin, of pictures or of recordings which label they have");
  auto choice = std::make_shared<ClassifyChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("FILE", choice->files,
                   "pictures or recordings, where the model reads them; none: their names are lines of stdin")
      ->type_name("");
  CLI::Option* labels = verb->add_option("--labels", choice->labels, "labels of your own, for a model of NLI")
                            ->type_name("A,B,…")
                            ->delimiter(',')
                            ->allow_extra_args(false);
  verb->add_option("--template", choice->zero_shot.hypothesis, "the hypothesis of a label (This example is {}.)")
      ->type_name("TEXT")
      ->needs(labels);
  verb->add_flag("--multi", choice->zero_shot.multi, "several of --labels may be right: each has a probability alone")
      ->needs(labels);
  verb->add_flag("--all", choice->all, "print every label with its probability, the most probable first");
  verb->add_flag("--json", choice->json, "print a JSON object for each: label, score, with --all all scores");
  add_show_flag(*verb, choice->page);
  add_precision_flag(*verb, choice->precision);
  add_threads_flag(*verb);
  verb->footer(kClassifyEnd);
  verb->callback([choice, labels, &code] { code = classify(*choice, labels->count() > 0); });
}

}  // namespace mh::cli
