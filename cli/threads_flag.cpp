// The one place where the program sets the number of threads.
#include "cli/threads_flag.h"

#include <CLI/CLI.hpp>

#include "cli/values.h"
#include "multihead/base/parallel.h"

namespace mh::cli {

void add_threads_flag(CLI::App& verb) {
  verb.add_option_function<int>("--threads", set_threads, "threads to use, over MH_THREADS")
      ->type_name("N")
      ->check(whole_number(1, 1024));
}

}  // namespace mh::cli
