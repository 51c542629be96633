// `multihead inspect`: what a file of weights, a checkpoint or a tokenizer holds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/grouped.h"
#include "cli/tensor_facts.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/base/printable.h"
#include "multihead/io/checkpoint.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/model_file.h"
#include "multihead/text/tokenizer.h"

namespace mh::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModel = "model.";
constexpr size_t kTextShown = 100;

struct Row {
  std::string name;
  Tensor tensor;
  TensorFacts facts;

  int64_t bytes() const { return tensor.count() * size_of(tensor.dtype()); }
};

struct Weights {
  std::optional<int64_t> step;  // of a checkpoint
  std::string state;            // likewise
  bool hashed = false;          // the file carries its hash: it is whole
  std::map<std::string, std::string> metadata;
  std::vector<Row> rows;

  template <class Number>
  int64_t sum(Number number) const {
    int64_t total = 0;
    for (const Row& row : rows) total += number(row);
    return total;
  }
  int64_t parameters() const {
    return sum([](const Row& row) { return row.tensor.count(); });
  }
  int64_t model_parameters() const {
    return sum([](const Row& row) { return row.name.starts_with(kModel) ? row.tensor.count() : 0; });
  }
  int64_t bytes() const {
    return sum([](const Row& row) { return row.bytes(); });
  }
  int64_t nan() const {
    return sum([](const Row& row) { return row.facts.nan; });
  }
  int64_t infinite() const {
    return sum([](const Row& row) { return row.facts.infinite; });
  }
};

// The file itself; of a folder, the model in it.
std::string file_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  const std::string model = (std::filesystem::path(path) / "model.safetensors").string();
  if (!std::filesystem::exists(model, ignored))
    fail(ErrorKind::io, "{} is a folder without model.safetensors; expected a file, or the folder of a model",
         printable_path(path));
  return model;
}

// Of a file or pipe that is none: false, and the reader of weights says why. Weights begin with the length of a header
// that begins with '{'; a tokenizer with the '{' itself.
bool is_tokenizer(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  char start[10] = {};  // the last one stays 0
  std::ifstream in(path, std::ios::binary);
  in.read(start, sizeof start - 1);
  uint64_t length = 0;
  std::memcpy(&length, start, sizeof length);
  const bool header = start[8] == '{' && length < (uint64_t{1} << 32);
  return !header && start[std::strspn(start, " \t\r\n")] == '{';
}

Weights read_weights(const std::string& path) {
  Weights out;
  Safetensors file = read_safetensors(path);
  if (is_checkpoint(file.metadata)) {
    Checkpoint checkpoint = read_checkpoint(path);
    out.step = checkpoint.step;
    out.state = std::move(checkpoint.state);
    file = {.tensors = std::move(checkpoint.tensors), .metadata = {}, .hashed = true};
  }
  out.hashed = file.hashed;
  out.metadata = std::move(file.metadata);
  for (auto& [name, tensor] : file.tensors) out.rows.push_back({name, std::move(tensor), {}});
  parallel_for(static_cast<int64_t>(out.rows.size()), [&](int64_t i) {
    Row& row = out.rows[static_cast<size_t>(i)];
    row.facts = tensor_facts(row.tensor);
  });
  return out;
}

// Of the folder of a model: the tokenizer in it, where there is one, is the model's.
void check_tokenizer_beside(const std::string& model, const std::map<std::string, std::string>& metadata) {
  const std::string path = (std::filesystem::path(model).parent_path() / "tokenizer.json").string();
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) check_tokenizer({path, Tokenizer::load(path)}, model, metadata);
}

std::string size_text(int64_t bytes) {
  const double number = static_cast<double>(bytes);
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  return bytes < 10'000'000 ? fmt::format("{:.0f} kB", number / 1e3) : fmt::format("{:.1f} MB", number / 1e6);
}

std::string bare(const std::string& text) {
  const std::string quoted = fmt::format("{}", Printable{text, kTextShown});
  return quoted.substr(1, quoted.size() - 2);
}

void print_rows(const std::vector<Row>& rows) {
  size_t names = 6, shapes = 5;
  for (const Row& row : rows) {
    names = std::max(names, bare(row.name).size());
    shapes = std::max(shapes, to_string(row.tensor.shape()).size());
  }
  fmt::print("\n{:<{}}  type  {:<{}}  parameters         min         max        mean         std\n", "tensor", names,
             "shape", shapes);
  for (const Row& row : rows) {
    const TensorFacts& facts = row.facts;
    fmt::print("{:<{}}  {:<4}  {:<{}}  {:>10}  {:>10.4g}  {:>10.4g}  {:>10.4g}  {:>10.4g}", bare(row.name), names,
               name(row.tensor.dtype()), to_string(row.tensor.shape()), shapes, row.tensor.count(), facts.least,
               facts.most, facts.mean, facts.deviation);
    if (facts.nan > 0) fmt::print("  {} NaN", facts.nan);
    if (facts.infinite > 0) fmt::print("  {} infinite", facts.infinite);
    fmt::print("\n");
  }
}

void print_text(const std::string& path, const Weights& weights) {
  fmt::print("{}: {}\n", printable_path(path),
             weights.step     ? fmt::format("checkpoint of step {}, whole", *weights.step)
             : weights.hashed ? "safetensors, whole"
                              : "safetensors");
  for (const auto& [key, text] : weights.metadata) fmt::print("  {}: {}\n", bare(key), bare(text));
  if (weights.step) fmt::print("  state: {}\n", bare(weights.state));
  if (!weights.rows.empty()) print_rows(weights.rows);
  fmt::print("\ntotal  {} tensors, {} parameters{}, {}", weights.rows.size(), grouped(weights.parameters()),
             weights.step ? fmt::format(" ({} of the model)", grouped(weights.model_parameters())) : "",
             size_text(weights.bytes()));
  if (weights.nan() > 0) fmt::print(", {} NaN", grouped(weights.nan()));
  if (weights.infinite() > 0) fmt::print(", {} infinite", grouped(weights.infinite()));
  fmt::print("\n");
}

// NaN and infinity have no place in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void print_json(const std::string& path, const Weights& weights) {
  Json out;
  out["file"] = path;
  out["kind"] = weights.step ? "checkpoint" : "safetensors";
  out["hashed"] = weights.hashed;
  if (weights.step) {
    out["step"] = *weights.step;
    Json state = Json::parse(weights.state, nullptr, false);
    out["state"] = state.is_discarded() ? Json(weights.state) : std::move(state);
  }
  out["metadata"] = weights.metadata;
  out["tensors"] = Json::array();
  for (const Row& row : weights.rows) {
    std::vector<int64_t> sizes;
    for (int axis = 0; axis < row.tensor.rank(); ++axis) sizes.push_back(row.tensor.size(axis));
    out["tensors"].push_back({{"name", row.name},
                              {"dtype", name(row.tensor.dtype())},
                              {"shape", sizes},
                              {"parameters", row.tensor.count()},
                              {"bytes", row.bytes()},
                              {"min", number(row.facts.least)},
                              {"max", number(row.facts.most)},
                              {"mean", number(row.facts.mean)},
                              {"std", number(row.facts.deviation)},
                              {"nan", row.facts.nan},
                              {"infinite", row.facts.infinite}});
  }
  out["total"] = {{"tensors", weights.rows.size()},
                  {"parameters", weights.parameters()},
                  {"bytes", weights.bytes()},
                  {"nan", weights.nan()},
                  {"infinite", weights.infinite()}};
  if (weights.step) out["total"]["model_parameters"] = weights.model_parameters();
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

void inspect_tokenizer(const std::string& path, bool json) {
  const Tokenizer tokenizer = Tokenizer::load(path);
  Json special = Json::object();
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.is_special(id)) special[tokenizer.token(id)] = id;
  if (json) {
    const Json out = {{"file", path}, {"kind", "tokenizer"}, {"tokens", tokenizer.size()}, {"special", special}};
    return fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
  }
  fmt::print("{}: tokenizer, byte-level BPE\n", printable_path(path));
  for (const auto& [token, id] : special.items()) fmt::print("  {}: {}\n", bare(token), id.get<int>());
  fmt::print("\ntotal  {} tokens, {} of them special\n", grouped(tokenizer.size()), special.size());
}

}  // namespace

void add_inspect(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("inspect", "say what a file of weights, a checkpoint or a tokenizer holds");
  auto named = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("FILE", *named, "a safetensors file, a checkpoint, a tokenizer.json, or the folder of a model")
      ->type_name("")
      ->required();
  verb->add_flag("--json", *json,
                 "print JSON: file, kind, hashed, step, state, metadata, tensors, total; tokens, special");
  verb->footer(
      "min, max, mean and std are those of the finite numbers. A file that carries its hash (checkpoints and models\n"
      "of `multihead train` and `multihead average`) is read only when every byte is as it was written: \"whole\". Of\n"
      "a folder, the tokenizer.json beside the model must be the one it was trained with.");
  verb->callback([named, json, &code] {
    const std::string file = file_of(*named);
    if (is_tokenizer(file)) {
      inspect_tokenizer(file, *json);
    } else {
      const Weights weights = read_weights(file);
      if (file != *named) check_tokenizer_beside(file, weights.metadata);
      *json ? print_json(file, weights) : print_text(file, weights);
    }
    code = kDone;
  });
}

}  // namespace mh::cli
