// All of the program's commands, flags and words of help, before anything is parsed.
#pragma once

namespace CLI {
class App;
}

namespace mh::cli {

// Part of the help of the whole program.
inline constexpr const char* kEnvironment =
    "Environment:\n"
    "  MULTIHEAD_MODEL  the folder of the model to translate with, where none is named\n"
    "  MH_THREADS       how many threads to use; unset: every CPU this process may run on\n"
    "  MH_CPU_ISA       the highest instruction set to use: baseline, avx2, avx512, avx512_bf16, amx\n"
    "                   (neon on Arm)\n";

// Names and describes `app` and adds every verb; running one writes its exit code to `code`. Every verb gets --quiet.
void make_program(CLI::App& app, int& code);

}  // namespace mh::cli
