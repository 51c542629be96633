// The flag --threads, for every verb that computes.
#pragma once

namespace CLI {
class App;
}

namespace mh::cli {

// Adds --threads to `verb`: as soon as it is read, so many threads compute.
void add_threads_flag(CLI::App& verb);

}  // namespace mh::cli
