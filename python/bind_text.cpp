// Tokenizers for multihead/tokenizer.py: encoding, decoding, files and training.
#include "multihead/text/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/tasks/data/text_file.h"
#include "multihead/text/text_lines.h"
#include "python/bindings.h"

namespace mh::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Texts = std::vector<std::string>;
using Offsets = std::vector<std::pair<size_t, size_t>>;
using EncodedInput = std::tuple<std::vector<int32_t>, std::vector<int32_t>, Offsets>;  // ids, types, code points

std::vector<EncodedInput> encode_inputs(const Tokenizer& tokenizer, const Texts& texts,
                                        const std::optional<Texts>& pairs, const EncodeOptions& options) {
  std::vector<EncodedInput> out(texts.size());
  parallel_for(static_cast<int64_t>(texts.size()), [&](int64_t n) {
    const auto at = static_cast<size_t>(n);
    Encoded encoded =
        pairs ? tokenizer.encode_pair(texts[at], (*pairs)[at], options) : tokenizer.encode_input(texts[at], options);
    count_in_code_points(encoded, texts[at]);
    if (pairs) count_in_code_points(encoded, (*pairs)[at], 1);
    Offsets offsets;
    for (const TextSpan& span : encoded.offsets) offsets.emplace_back(span.begin, span.end);
    out[at] = {std::move(encoded.ids), std::move(encoded.types), std::move(offsets)};
  });
  return out;
}

nb::bytes decoded_bytes(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  const std::string text = tokenizer.decode(ids);
  return nb::bytes(text.data(), text.size());
}

std::vector<std::string> spelled(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> out;
  for (const int32_t id : ids) out.push_back(tokenizer.token(id));
  return out;
}

// The columns of a line that are texts, counted from 1; none: all.
void take_columns(std::string_view line, const std::vector<int64_t>& columns, const std::string& place, Texts& texts) {
  Texts all;
  for (size_t tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t')) {
    all.emplace_back(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  all.emplace_back(line);
  if (columns.empty()) texts.insert(texts.end(), all.begin(), all.end());
  for (const int64_t column : columns) {
    check(column >= 1 && column <= static_cast<int64_t>(all.size()),
          "Tokenizer.train: {}: this line has {} columns; columns asks for number {}", place, all.size(), column);
    texts.push_back(all[static_cast<size_t>(column - 1)]);
  }
}

// The texts of the files, and a sentence for every file of which lines were skipped.
std::pair<Texts, Texts> read_texts(const Texts& paths, const std::vector<int64_t>& columns) {
  Texts texts, skipped;
  for (const std::string& path : paths) {
    const TextFile file = read_text(path);
    BrokenLines broken;
    int64_t number = 0;
    for (std::string_view rest = file.text; !rest.empty();) {
      const std::string_view line = next_line(rest);
      if (!broken.skips(line, ++number)) take_columns(line, columns, fmt::format("{}:{}", path, number), texts);
    }
    if (broken.count() > 0) skipped.push_back(broken.sentence(path, number));
  }
  return {std::move(texts), std::move(skipped)};
}

Normalisation normalisation_of(const std::string& name) {
  if (name == "none") return Normalisation::none;
  if (name == "nfc") return Normalisation::nfc;
  if (name == "nfkc") return Normalisation::nfkc;
  fail(ErrorKind::invalid_argument, "Tokenizer.train: normalisation is '{}'; expected none, nfc or nfkc", name);
}

Tokenizer train_tokenizer(const Texts& texts, int32_t vocabulary, const Texts& specials, bool prefix_space,
                          bool lowercase, const std::string& normalisation, int64_t min_frequency) {
  check(std::any_of(texts.begin(), texts.end(), [](const std::string& text) { return !text.empty(); }),
        "Tokenizer.train: there is no text to learn from");
  return train_bpe(texts, {.vocabulary = vocabulary,
                           .specials = specials,
                           .prefix_space = prefix_space,
                           .lowercase = lowercase,
                           .normalisation = normalisation_of(normalisation),
                           .min_frequency = min_frequency});
}

}  // namespace

void bind_text(nb::module_& m) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Tokenizer>(m, "Tokenizer", "What multihead.Tokenizer holds.")
      .def("json", &Tokenizer::json, Release())
      .def("save", &Tokenizer::save, "path"_a, Release())
      .def(
          "encode",
          [](const Tokenizer& self, const Texts& texts, const std::optional<Texts>& pairs, bool add_special,
             bool find_special, int64_t max_length) {
            return encode_inputs(self, texts, pairs, {add_special, find_special, max_length});
          },
          "texts"_a, "pairs"_a.none(), "add_special"_a, "find_special"_a, "max_length"_a, Release())
      .def("decode", decoded_bytes, "ids"_a)
      .def("tokens", spelled, "ids"_a)
      .def("size", &Tokenizer::size)
      .def(
          "id", [](const Tokenizer& self, const std::string& token) { return self.id(token); }, "token"_a)
      .def("is_special", &Tokenizer::is_special, "id"_a);
  m.def("load_tokenizer", &Tokenizer::load, "path"_a, Release());
  m.def(
      "parse_tokenizer", [](const std::string& json) { return Tokenizer::parse(json, "tokenizer"); }, "json"_a,
      Release());
  m.def("read_texts", read_texts, "paths"_a, "columns"_a, Release());
  m.def("train_tokenizer", train_tokenizer, "texts"_a, "vocabulary"_a, "specials"_a, "prefix_space"_a, "lowercase"_a,
        "normalisation"_a, "min_frequency"_a, Release());
}

}  // namespace mh::python
