// The flags of beam search, for every verb that translates.
#pragma once

#include <string>

#include "multihead/base/dtype.h"
#include "multihead/generate/options.h"

namespace CLI {
class App;
}

namespace mh::cli {

struct SearchFlags {
  SearchOptions search{};
  std::string penalty = "power:1";
  std::string precision = "f32";

  // Adds the flags to `verb`; this must outlive it.
  void add_to(CLI::App& verb);
  // Puts --length-penalty in its place. Throws: CLI::ValidationError, for flags that do not fit.
  void settle();
  DType compute() const { return precision == "bf16" ? DType::bf16 : DType::f32; }
};

}  // namespace mh::cli
