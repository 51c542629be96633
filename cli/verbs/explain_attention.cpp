// `multihead explain-attention`: the page that teaches the formula.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/verbs.h"
#include "multihead/io/durable_file.h"
#include "multihead/show/explain.h"

namespace mh::cli {

void add_explain_attention(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("explain-attention", "write a page that explains attention, number by number");
  auto output = std::make_shared<std::string>();
  verb->add_option("-o,--output", *output, "the page to write")->type_name("FILE")->required();
  verb->footer(
      "A small example with every step visible: products, scores, mask, softmax, the mean of the values, heads side by\n"
      "side, the last product. The reader changes the numbers and sees them flow. One file, no network.\n"
      "\n"
      "  multihead explain-attention -o attention.html");
  verb->callback([output, &code] {
    write_durably(*output, attention_explained_html());
    code = kDone;
  });
}

}  // namespace mh::cli
