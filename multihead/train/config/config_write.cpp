// The configuration as TOML, and the page about its keys.
#include "multihead/train/config/config_keys.h"

namespace mh {

namespace detail {

namespace {

constexpr const char* kAbove = R"(# Configuration

The keys of the TOML file that `multihead train CONFIG.toml` reads. `multihead train --keys` prints this page, and a
test keeps the two equal.

A key that is not in the file has its default. A variable of the environment named `MULTIHEAD_<SECTION>_<KEY>`, such as
`MULTIHEAD_MODEL_WIDTH=512`, goes over the file, and a flag `--set model.width=512` over both. A key that does not exist
and a value that does not fit are refused, with the line. Paths count from the folder where the program is started. The
configuration a run used, every key with its value, lies beside its model as `config.toml`.

## Files of sentence pairs
Lines of UTF-8 that end with `\n` or `\r\n`, in one of two forms: TSV, where source and target are two columns of a line;
or two files whose lines belong together. Files compressed with gzip or xz are read as they are, told by their content;
other compressions, UTF-16 and UTF-32 are refused by name. A UTF-8 byte order mark is skipped. What is wrong with a line is
handled by one rule each:

| a line | what happens |
|---|---|
| with an empty side, or nothing but white space on it | skipped, counted, reported |
| with a side that is not UTF-8 | skipped, counted, reported |
| of more than 65536 bytes | skipped, counted, reported |
| with more than `data.max_length` tokens on a side | skipped, counted, reported |
| with more columns than those that are read | read, counted, reported |
| without a column that is to be read | refused, with its number |

No encoding is guessed, and no character is put in place of a broken byte: `multihead translate`, `eval` and `tokenizer
train` skip and report lines that are not UTF-8 too (`translate` writes an empty line for one). `iconv -f WINDOWS-1252 -t
UTF-8` converts an older Western European file.

An empty file, a file without a pair that is left, and two files with different numbers of lines are refused. Nothing is
changed in the files, and nothing made from them is kept outside `train.output`. `multihead train CONFIG.toml --check`
reads it all, tries one step and writes nothing.

## A text for a language model
`task.kind = "language_model"` reads one text: lines of UTF-8, compressed or not. Blank lines are skipped; those that are not
UTF-8 or have more than 65536 bytes are skipped, counted and reported. Every line ends with the token `</s>`; the tokens are
cut into windows of `data.max_length`, each token in exactly one of them, and each window begins with `<s>`. Validation gives
the loss and the perplexity per token, the perplexity per word (what white space separates) and bits per byte (a line's end
counts as one), and shows a few texts that the model writes. `multihead eval MODEL FILE` gives the same numbers for any text.

With `data.lines = "text"` the text is taken as it is: blank lines stay, a line's break is a token of its own, and there is no
`</s>`; `data.hold_out_share` is then a share of the bytes. [language_models.md](language_models.md) has an example.

## Going on from a model
`model.from` names the folder of a model that this program trained (or its `.safetensors` file, with `tokenizer.json` beside
it); training starts from its weights, with the optimiser and the schedule from their beginning. Its tokenizer is used too:
`tokenizer.path` is left empty, or names the same one. The other keys of `[model]` are those of the model: start from the
`config.toml` beside it. To go on from the model that comes with the project, with your own pairs:

```
multihead train models/en-de/config.toml --set model.from=models/en-de --set data.train=mine.tsv \
  --set data.valid=my-valid.tsv --set optimizer.learning_rate=1e-4 --set train.epochs=5 --set train.output=models/mine
```
`--resume` is different: it continues an interrupted run in its own folder, moments and position included.
)";

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (code < 0x20 || code == 0x7F)
      out += fmt::format("\\u{:04X}", code);
    else
      out += c;
  }
  return out + '"';
}

// With a point or an exponent: without one TOML takes it for an integer.
std::string number_text(double x) {
  const std::string text = fmt::format("{}", x);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string_view about(std::string_view section) {
  if (section == "task") return "What is learned.";
  if (section == "model") return "The model that learns it.";
  if (section == "tokenizer") return "How text becomes tokens.";
  if (section == "data") return "What it is trained on, and in which batches.";
  if (section == "optimizer") return "How weights move.";
  return "How long, how exactly, and where the result goes.";
}

}  // namespace

std::string value_text(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  return quoted(std::get<std::string>(value));
}

}  // namespace detail

std::string to_toml(const TrainConfig& config) {
  std::string out = "# A configuration of `multihead train`, every key with its value.\n", section;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    if (key.section != section) out += fmt::format("\n[{}]\n", section = key.section);
    out += fmt::format("# {}\n{} = {}\n", key.doc, key.name, detail::value_text(key.value(config)));
  }
  return out;
}

std::vector<std::string> config_changes(const TrainConfig& before, const TrainConfig& now) {
  std::vector<std::string> out;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    const std::string path = key.path();
    if (path == "train.output" || path == "train.save_every" || path == "train.keep" || path == "train.threads")
      continue;
    const std::string was = detail::value_text(key.value(before)), is = detail::value_text(key.value(now));
    if (was != is) out.push_back(fmt::format("{} was {} and is {}", path, was, is));
  }
  return out;
}

std::string configuration_page() {
  std::string out = detail::kAbove;
  const TrainConfig defaults;
  std::string section;
  for (const detail::ConfigKey& key : detail::config_keys()) {
    if (key.section != section) {
      section = key.section;
      out += fmt::format("\n## [{}]\n{}\n\n| key | default | may hold | meaning |\n|---|---|---|---|\n", section,
                         detail::about(section));
    }
    out += fmt::format("| `{}` | `{}` | {} | {} |\n", key.name, detail::value_text(key.value(defaults)), key.expected,
                       key.doc);
  }
  return out;
}

}  // namespace mh
