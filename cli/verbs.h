// The verbs of the program: each adds its subcommand and leaves its exit code.
#pragma once

namespace CLI {
class App;
}

namespace mh::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;   // it ran, and something failed
inline constexpr int kUsage = 2;    // it was not understood
inline constexpr int kStopped = 3;  // it stopped before the end, as asked by a signal

// Adds the verb to `app`; running it writes one of the codes above to `code`.
void add_doctor(CLI::App& app, int& code);
void add_selftest(CLI::App& app, int& code);
void add_bench(CLI::App& app, int& code);
void add_translate(CLI::App& app, int& code);
void add_eval(CLI::App& app, int& code);
void add_bench_train(CLI::App& bench, int& code);  // a table of `bench`
void add_train(CLI::App& app, int& code);
void add_tokenizer(CLI::App& app, int& code);
void add_inspect(CLI::App& app, int& code);
void add_average(CLI::App& app, int& code);

}  // namespace mh::cli
