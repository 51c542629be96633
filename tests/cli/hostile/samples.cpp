// Small enough to end in a fraction of a second.
#include "tests/cli/hostile/samples.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "multihead/train/trainer.h"
#include "tests/generate/tiny_language_model.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/temporary_folder.h"
#include "tests/models/encoder_folder.h"
#include "tests/models/text_to_text_folder.h"

namespace mh::cli {

std::vector<std::string> Sample::words(const std::string& out) const {
  std::vector<std::string> all;
  std::istringstream names(command);
  for (std::string word; names >> word;) all.push_back(word);
  all.insert(all.end(), flags.begin(), flags.end());
  if (out.empty() && !brief.empty()) all.push_back(brief);
  if (output_flag.empty() || (out.empty() && !brief.empty())) return all;
  const std::string path = out.empty() ? output : out;
  if (output_flag.ends_with('=')) {  // a key of the configuration
    all.insert(all.end(), {"--set", output_flag + path});
  } else {
    all.insert(all.end(), {output_flag, path});
  }
  return all;
}

const std::vector<Sample>& samples() {
  static const std::vector<std::string> kModel = {"model/model.safetensors", "model/tokenizer.json"};
  static const std::vector<std::string> kClassifier = {"classifier/model.safetensors", "classifier/tokenizer.json"};
  static const std::vector<Sample> all = {
      {.command = "doctor"},
      {.command = "selftest", .flags = {"--cases", "1"}},
      {.command = "bench attention",
       .flags = {"--case", "t32_d64", "--dtype", "f32", "--threads", "1", "--seconds", "0.01", "--pass", "forward"},
       .output_flag = "--record",
       .output = "made",
       .brief = "--list"},
      {.command = "bench gemm",
       .flags = {"--case", "gemm_16x1024", "--dtype", "f32", "--threads", "1", "--seconds", "0.01"},
       .output_flag = "--record",
       .output = "made",
       .brief = "--list"},
      {.command = "bench rows",
       .flags = {"--case", "embedding", "--dtype", "f32", "--threads", "1", "--seconds", "0.01"},
       .output_flag = "--record",
       .output = "made",
       .brief = "--list"},
      {.command = "bench train",
       .flags = {"--batch", "1", "--length", "2", "--steps", "1", "--threads", "2"},
       .repeatable = false},
      {.command = "train",
       .flags = {"run.toml", "--threads", "2"},
       .output_flag = "train.output=",
       .output = "made",
       .files = {"run.toml", "pairs.tsv", "valid.tsv"},
       .needs_thread = true},
      {.command = "translate",
       .flags = {"model", "--beam", "2", "--max-length", "8", "--threads", "2"},
       .files = kModel,
       .input = "the cat sat\na dog\n"},
      {.command = "translate", .flags = {"pair", "--to", "deu_Latn", "--threads", "2"}, .input = "w6 w8\nw10\n"},
      {.command = "summarise", .flags = {"summary", "--max-length", "6", "--threads", "2"}, .input = "w6 w8 w9\nw10\n"},
      {.command = "generate",
       .flags = {"lm", "-n", "5", "--threads", "2"},
       .files = {"lm/model.safetensors", "lm/tokenizer.json"},
       .input = "the cat\na dog\n"},
      {.command = "classify", .flags = {"classifier"}, .files = kClassifier, .input = "good film\nbad film\n"},
      {.command = "tag",
       .flags = {"tagger"},
       .files = {"tagger/model.safetensors", "tagger/tokenizer.json"},
       .input = "Ada sings\n"},
      {.command = "new", .flags = {"classify", "fresh"}},
      {.command = "show",
       .flags = {"model", "the cat"},
       .output_flag = "--output",
       .output = "made.html",
       .files = kModel},
      {.command = "heads", .flags = {"model", "set.tsv"}, .files = {"set.tsv", kModel[0], kModel[1]}},
      {.command = "explain-attention", .output_flag = "--output", .output = "made.html"},
      {.command = "embed",
       .flags = {"body", "--threads", "2"},
       .output_flag = "--output",
       .output = "made.npy",
       .input = "the cat sat\na dog\n"},
      {.command = "fill", .flags = {"masked", "--threads", "2"}, .input = "the [MASK] sat\n"},
      {.command = "answer", .flags = {"question", "--threads", "2"}, .input = "who sings ?\tada sings .\n"},
      {.command = "search",
       .flags = {"body", "docs.txt", "--query", "the cat", "--threads", "2"},
       .files = {"docs.txt"},
       .texts = {"docs.txt"},
       .repeatable = false},  // the second run finds its index made
      {.command = "eval",
       .flags = {"model", "set.tsv", "--beam", "1", "--max-length", "8", "--threads", "2"},
       .output_flag = "--output",
       .output = "made.txt",
       .files = {"set.tsv", kModel[0], kModel[1]},
       .repeatable = false},  // it prints how fast it was
      {.command = "tokenizer train",
       .flags = {"text.txt", "--vocabulary", "280"},
       .output_flag = "--out",
       .output = "made.json",
       .files = {"text.txt"},
       .texts = {"text.txt"}},
      {.command = "tokenizer encode", .flags = {kModel[1]}, .files = {kModel[1]}, .input = "the cat\n"},
      {.command = "tokenizer decode", .flags = {kModel[1]}, .files = {kModel[1]}, .input = "70 71\n"},
      {.command = "inspect", .flags = {kModel[0]}, .files = {kModel[0]}},
      {.command = "average",
       .flags = {kModel[0], "second.safetensors"},
       .output_flag = "--out",
       .output = "made.safetensors",
       .files = {kModel[0], "second.safetensors"}},
      {.command = "completion", .flags = {"bash"}},
  };
  return all;
}

namespace {

// One step: the folder is what counts.
void train_labels(TaskKind task, const std::string& data, const std::string& folder) {
  std::string lines;
  for (int n = 0; n < 4; ++n)
    lines += task == TaskKind::tag ? "Ada B-PER\nsings O\n\n" : n % 2 == 0 ? "good film\tyes\n" : "bad film\tno\n";
  put_text(data, lines);
  TrainConfig c;
  c.task.kind = task;
  c.model = {.vocabulary = 0, .width = 8, .heads = 2, .feed_forward = 8, .encoder_layers = 1, .max_length = 16};
  c.tokenizer = {.kind = TokenizerKind::words, .min_count = 1};
  c.data.train = c.data.valid = data;
  c.data.max_length = 16;
  c.train.output = folder;
  c.train.steps = 1;
  c.train.threads = 1;
  train({.config = c});
}

}  // namespace

void make_inputs(const std::string& folder) {
  const std::string model = folder + "/model";
  std::filesystem::create_directories(model);
  test::write_translator(model);
  test::write_language_model(folder + "/lm");
  test::put_text_to_text(folder + "/pair", "m2m_100_lm",
                         {.special = {{3, "eng_Latn"}, {9, "deu_Latn"}}, .before = {3}});
  test::put_text_to_text(folder + "/summary", "bart_lm");
  test::put_encoder(folder + "/body", "bert_body");
  test::put_encoder(folder + "/masked", "bert_masked");
  test::put_encoder(folder + "/question", "bert_question");
  put_text(folder + "/docs.txt", "the cat sat\na dog\n");
  std::filesystem::copy_file(model + "/model.safetensors", folder + "/second.safetensors");
  put_text(folder + "/set.tsv", "the cat sat\tdie Katze\na dog\tein Hund\n");
  put_text(folder + "/valid.tsv", "the house\tdas Haus\n");
  put_text(folder + "/text.txt", "the cat sat on the mat\nthe dog sat on the cat\n");
  std::string pairs;
  for (int i = 0; i < 20; ++i) pairs += fmt::format("the house number {}\tdas Haus Nummer {}\n", i, i);
  put_text(folder + "/pairs.tsv", pairs);
  train_labels(TaskKind::classify, folder + "/texts.tsv", folder + "/classifier");
  train_labels(TaskKind::tag, folder + "/tags.conll", folder + "/tagger");
  put_text(folder + "/run.toml",
           "[model]\nwidth = 8\nheads = 2\nfeed_forward = 8\nencoder_layers = 1\ndecoder_layers = 1\n"
           "[tokenizer]\nvocabulary = 280\n"
           "[data]\ntrain = \"pairs.tsv\"\nvalid = \"valid.tsv\"\ntokens_per_batch = 100\n"
           "[train]\noutput = \"made\"\nsteps = 2\n");
}

}  // namespace mh::cli
