// The loop over stdin of the verbs that answer lines.
#include "cli/lines_through.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/values.h"
#include "multihead/base/printable.h"

namespace mh::cli {

void lines_through(std::string_view verb, size_t most, const AnswerLines& answer) {
  if (isatty(STDIN_FILENO) == 1) mention("Type a line and press Enter; Ctrl-D ends.");
  LineReader reader(STDIN_FILENO);
  int64_t first = 1;
  for (auto lines = reader.take(most); !lines.empty(); lines = reader.take(most)) {
    for (size_t n = 0; n < lines.size(); ++n) {
      const auto number = first + static_cast<int64_t>(n);
      if (!lines[n].skipped.empty()) mention("multihead {}: skipped line {}: {}", verb, number, lines[n].skipped);
      if (lines[n].left_out > 0) mention_cut(verb, number);
    }
    const std::string out = answer(lines, first);
    std::fwrite(out.data(), 1, out.size(), stdout);
    flush_output();
    first += static_cast<int64_t>(lines.size());
  }
}

void mention_cut(std::string_view verb, int64_t line) {
  mention("multihead {}: line {} is too long for the model; only its beginning is read", verb, line);
}

void mention_unused(std::string_view verb, const std::string& folder, const std::vector<std::string>& unused) {
  if (unused.empty()) return;
  mention("multihead {}: {} holds {} that its model does not read: {}{}", verb, printable_path(folder),
          unused.size() == 1 ? "a tensor" : fmt::format("{} tensors", unused.size()), printable(unused.front()),
          unused.size() == 1 ? "" : ", …");
}

void add_precision_flag(CLI::App& verb, std::string& precision) {
  verb.add_option("--precision", precision, "type of the products: f32 or bf16 (f32)")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16"}));
}

DType precision_named(const std::string& precision) { return precision == "bf16" ? DType::bf16 : DType::f32; }

}  // namespace mh::cli
