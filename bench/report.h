// What a benchmark says: rows, as a table for people, as JSON for programs, as files of record.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/trial.h"
#include "multihead/check/limits.h"

namespace mh::bench {

struct Row {
  Case c;
  std::string rung;
  std::string unit;  // GFLOP/s or GB/s
  Outcome outcome;
};

struct Report {
  std::vector<Limits> limits;  // one per number of threads
  std::vector<Row> rows;
};

// Heading, one line per row, and the limits; lines end in a newline.
std::string table_heading();
std::string table_line(const Row& row);
std::string limits_text(const std::vector<Limits>& limits);

// {machine, limits, rows}; a row has case, dtype, pass, B, H, Hkv, Tq, Tk, Dk, Dv, mask, threads, rung, seconds, rate,
// unit, fraction, fraction_p90. Where there are tiles also tile_states: trials and rates in each state of the unit.
nlohmann::ordered_json to_json(const Report& report);

// Writes <machine>.json and <machine>.md into `folder`, keeping the rows of earlier runs that this one did not measure.
// Both durably. Returns the path of the JSON. Throws: io, naming the file, where it cannot be written.
std::filesystem::path record(const Report& report, const std::filesystem::path& folder);

}  // namespace mh::bench
