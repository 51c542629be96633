// The flags of searching and of drawing, for every verb that writes one text from another.
#pragma once

#include <string>

#include "multihead/base/dtype.h"
#include "multihead/generate/options.h"

namespace CLI {
class App;
}

namespace mh::cli {

struct SearchFlags {
  SearchOptions search{};  // of a model of our own
  std::string penalty = "power:1";
  std::string precision = "f32", stop = "first";

  // Adds the flags to `verb`; this must outlive it.
  void add_to(CLI::App& verb);
  // Puts --length-penalty in its place. Throws: CLI::ValidationError, for flags that do not fit.
  void settle();
  // `folder` with what the flags say in its place. After settle.
  SearchOptions over(SearchOptions folder) const;
  bool searches() const { return given("--beam"); }  // even where the folder would draw
  // Likewise, of the rules that drawing has too.
  WritingRules over(WritingRules folder) const;
  DType compute() const { return precision == "bf16" ? DType::bf16 : DType::f32; }

 private:
  bool given(const char* flag) const;
  const CLI::App* verb_ = nullptr;
};

struct SamplingFlags {
  SamplingOptions sampling{};
  bool sample = false;

  // Adds --sample and its flags to `verb`, behind SearchFlags; this must outlive it.
  void add_to(CLI::App& verb);
  SamplingOptions over(SamplingOptions folder) const;

 private:
  const CLI::App* verb_ = nullptr;
};

}  // namespace mh::cli
