// What the verbs share that answer line by line: how lines come and answers go, and in which type they compute.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line_reader.h"
#include "multihead/base/dtype.h"

namespace CLI {
class App;
}

namespace mh::cli {

// Lines that were there together; the first has the number `first`, from 1. Gives what is to be printed.
using AnswerLines = std::function<std::string(std::span<const LineReader::Line> lines, int64_t first)>;

// Reads stdin to its end, `most` lines at once where so many are there, and prints the answers to each lot before it
// waits for the next. Lines that are not UTF-8 are said on stderr. Throws: as LineReader and flush_output.
void lines_through(std::string_view verb, size_t most, const AnswerLines& answer);

// Says on stderr that the line is longer than the model reads.
void mention_cut(std::string_view verb, int64_t line);

// Says on stderr that the folder holds tensors that its model does not read; nothing where there are none.
void mention_unused(std::string_view verb, const std::string& folder, const std::vector<std::string>& unused);

// --precision.
void add_precision_flag(CLI::App& verb, std::string& precision);
DType precision_named(const std::string& precision);

}  // namespace mh::cli
