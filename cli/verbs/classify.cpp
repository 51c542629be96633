// `multihead classify`: lines or files in, a label and its probability out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "cli/line_reader.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/tasks/pixels/pixel_model.h"
#include "multihead/tasks/task_type.h"
#include "multihead/tasks/verbs/classifier.h"

namespace mh::cli {
namespace {

constexpr const char* kClassifyEnd =
    "A line of a model that reads pairs holds both texts, with a tab between them. A line that is not UTF-8 gets an\n"
    "empty line.\n"
    "A model that reads pictures (a ViT or DeiT) takes the names of PNG, JPEG or PPM files, as arguments or as lines; one\n"
    "that reads recordings those of WAV files. A file that cannot be read gets an empty line, and the exit code is 1.\n"
    "\n"
    "  multihead train configs/classify/mr.toml\n"
    "  echo 'A film that nobody needs.' | multihead classify models/mr\n"
    "  multihead eval models/mr data/mr/test.tsv --confusion\n"
    "  multihead classify models/shapes one.png two.jpg";

constexpr size_t kMostLines = 1024;  // that are read before the first is answered, where they are there

struct ClassifyChoice {
  std::string model, precision = "f32";
  std::vector<std::string> files;
  bool all = false, json = false;
};

// The labels, most probable first.
std::vector<size_t> by_score(const Classification& one) {
  std::vector<size_t> order(one.scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return one.scores[a] > one.scores[b]; });
  return order;
}

std::string line_of(const ClassifyChoice& choice, const Classification& one, const std::vector<std::string>& labels) {
  if (choice.json) {
    nlohmann::ordered_json out{{"label", one.label}, {"score", one.score}};
    if (choice.all)
      for (const size_t n : by_score(one)) out["scores"][labels[n]] = one.scores[n];
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
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
  const PixelModel model = PixelModel::load(choice.model, choice.precision == "bf16" ? DType::bf16 : DType::f32);
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

int run(const ClassifyChoice& choice) {
  const std::string kind = model_kind_of_folder(choice.model);
  if (kind == "image_class" || kind == "speech_class") return run_files(choice);
  if (!choice.files.empty()) throw CLI::ValidationError("FILE", "this model reads lines from stdin; expected no files");
  refuse_stdin_as_stdout();
  const Classifier classifier = Classifier::load(choice.model, choice.precision == "bf16" ? DType::bf16 : DType::f32);
  if (isatty(STDIN_FILENO) == 1) mention("Type a text and press Enter; Ctrl-D ends.");
  LineReader reader(STDIN_FILENO);
  int64_t done = 0;
  for (auto lines = reader.take(kMostLines); !lines.empty(); lines = reader.take(kMostLines)) {
    std::vector<std::string> texts;
    for (const LineReader::Line& line : lines)
      if (line.skipped.empty()) texts.push_back(line.text);
    const std::vector<Classification> found = classifier(texts);
    size_t next = 0;
    std::string out;
    for (const LineReader::Line& line : lines) {
      ++done;
      if (!line.skipped.empty()) {
        mention("multihead classify: skipped line {}: {}", done, line.skipped);
      } else {
        if (found[next].cut || line.left_out > 0)
          mention("multihead classify: line {} is too long for the model; only its beginning is read", done);
        out += line_of(choice, found[next++], classifier.labels());
      }
      out += '\n';
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
    flush_output();
  }
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
  verb->add_flag("--all", choice->all, "print every label with its probability, the most probable first");
  verb->add_flag("--json", choice->json, "print a JSON object for each: label, score, with --all all scores");
  verb->add_option("--precision", choice->precision, "type of the products: f32 or bf16 (f32)")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "bf16"}));
  verb->footer(kClassifyEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
