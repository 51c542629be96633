// The verbs of the program: each adds its subcommand and leaves its exit code.
#pragma once

#include "cli/exit_code.h"

namespace CLI {
class App;
}

namespace mh::cli {

// Adds the verb to `app`; running it writes its exit code to `code`.
void add_doctor(CLI::App& app, int& code);
void add_bench(CLI::App& app, int& code);
void add_translate(CLI::App& app, int& code);
void add_summarise(CLI::App& app, int& code);
void add_generate(CLI::App& app, int& code);
void add_show(CLI::App& app, int& code);
void add_heads(CLI::App& app, int& code);
void add_explain_attention(CLI::App& app, int& code);
void add_classify(CLI::App& app, int& code);
void add_tag(CLI::App& app, int& code);
void add_embed(CLI::App& app, int& code);
void add_search(CLI::App& app, int& code);
void add_fill(CLI::App& app, int& code);
void add_answer(CLI::App& app, int& code);
void add_recommend(CLI::App& app, int& code);
void add_eval(CLI::App& app, int& code);
void add_bench_train(CLI::App& bench, int& code);  // a table of `bench`
void add_new(CLI::App& app, int& code);
void add_train(CLI::App& app, int& code);
void add_tokenizer(CLI::App& app, int& code);
void add_inspect(CLI::App& app, int& code);
void add_convert(CLI::App& app, int& code);
void add_average(CLI::App& app, int& code);
void add_completion(CLI::App& app, int& code);
void add_reference(CLI::App& app, int& code);  // hidden: the pages made from the program itself

}  // namespace mh::cli
