// Rows as text and as JSON.
#include "bench/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/machine_facts.h"

namespace mh::bench {
namespace {

constexpr double kGiga = 1e9;

std::string sizes_text(const Case& c) {
  const Sizes& s = c.sizes;
  if (c.pass == Pass::rows) return fmt::format("{} x {}", s.Tq, s.Dk);
  if (c.pass == Pass::gemm) return fmt::format("{} x {} x {}", s.Tq, s.Tk, s.Dk);
  const std::string heads = s.H == s.Hkv ? fmt::format("{}", s.H) : fmt::format("{}/{}", s.H, s.Hkv);
  const std::string lengths = s.Tq == s.Tk ? fmt::format("{}", s.Tq) : fmt::format("{}:{}", s.Tq, s.Tk);
  const std::string widths = s.Dk == s.Dv ? fmt::format("{}", s.Dk) : fmt::format("{}:{}", s.Dk, s.Dv);
  return fmt::format("{} {} {} {}", s.B, heads, lengths, widths);
}

// Products and rows have none.
std::string mask_text(const Case& c, const char* none) {
  return c.pass == Pass::gemm || c.pass == Pass::rows ? none : feature(c.feature).mask;
}

std::string states_text(const Outcome& outcome) {
  if (outcome.fast + outcome.slow == 0) return "";
  return fmt::format("  fast {} ({} trials), slow {} ({})", static_cast<int64_t>(outcome.fast_rate / kGiga),
                     outcome.fast, static_cast<int64_t>(outcome.slow_rate / kGiga), outcome.slow);
}

// Four digits say all a measurement knows, and keep recorded files readable.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

nlohmann::ordered_json row_json(const Row& row) {
  const Sizes& s = row.c.sizes;
  nlohmann::ordered_json out;
  out["case"] = row.c.name;
  out["dtype"] = std::string(mh::name(row.c.dtype));
  out["pass"] = std::string(name(row.c.pass));
  out["B"] = s.B;
  out["H"] = s.H;
  out["Hkv"] = s.Hkv;
  out["Tq"] = s.Tq;
  out["Tk"] = s.Tk;
  out["Dk"] = s.Dk;
  out["Dv"] = s.Dv;
  out["mask"] = mask_text(row.c, "none");
  out["threads"] = row.c.threads;
  out["rung"] = row.rung;
  out["seconds"] = rounded(row.outcome.seconds);
  out["rate"] = rounded(row.outcome.rate / kGiga);
  out["unit"] = row.unit;
  out["fraction"] = rounded(row.outcome.fraction);
  out["fraction_p90"] = rounded(row.outcome.fraction_p90);
  return out;
}

nlohmann::ordered_json state_json(const Row& row) {
  return {{"case", row.c.name},
          {"dtype", std::string(mh::name(row.c.dtype))},
          {"pass", std::string(name(row.c.pass))},
          {"threads", row.c.threads},
          {"trials", row.outcome.trials},
          {"fast", row.outcome.fast},
          {"slow", row.outcome.slow},
          {"fast_rate", rounded(row.outcome.fast_rate / kGiga)},
          {"slow_rate", rounded(row.outcome.slow_rate / kGiga)}};
}

}  // namespace

std::string table_heading() {
  return fmt::format("{:<22} {:<5} {:<8} {:<21} {:<9} {:>3}  {:>9} {:<7} {:>8} {:>6} {:>6}\n", "case", "dtype", "pass",
                     "B H Tq:Tk D", "mask", "thr", "rate", "unit", "fraction", "p90", "ratio");
}

std::string table_line(const Row& row) {
  const Outcome& o = row.outcome;
  const std::string ratio = o.ratio ? fmt::format("{:.2f}", *o.ratio) : "";
  const std::string mask = mask_text(row.c, "");
  return fmt::format("{:<22} {:<5} {:<8} {:<21} {:<9} {:>3}  {:>9.1f} {:<7} {:>8.3f} {:>6.3f} {:>6}{}\n", row.c.name,
                     mh::name(row.c.dtype), name(row.c.pass), sizes_text(row.c), mask, row.c.threads, o.rate / kGiga,
                     row.unit, o.fraction, o.fraction_p90, ratio, states_text(o));
}

std::string limits_text(const std::vector<Limits>& limits) {
  std::string out;
  for (const Limits& each : limits) {
    out += fmt::format("limits, {} thread{}: f32 multiply-adds {:.0f} GFLOP/s", each.threads,
                       each.threads == 1 ? "" : "s", each.multiply_adds / kGiga);
    if (each.pair_products > 0) out += fmt::format(", bf16 pair products {:.0f} GFLOP/s", each.pair_products / kGiga);
    if (each.tile_products > 0) out += fmt::format(", bf16 tile products {:.0f} GFLOP/s", each.tile_products / kGiga);
    out += fmt::format("; plain read L2 {:.0f}, L3 {:.0f}, DRAM {:.0f} GB/s\n", each.read_l2 / kGiga,
                       each.read_l3 / kGiga, each.read_dram / kGiga);
  }
  return out;
}

nlohmann::ordered_json to_json(const Report& report) {
  nlohmann::ordered_json out;
  out["machine"] = to_json(machine_facts());
  out["machine"]["rung"] = std::string(rung_name());
  out["limits"] = nlohmann::ordered_json::array();
  for (const Limits& each : report.limits) {
    nlohmann::ordered_json limit{{"threads", each.threads},
                                 {"rung", std::string(rung_name())},
                                 {"fma_gflops", rounded(each.multiply_adds / kGiga)}};
    if (each.pair_products > 0) limit["pair_gflops"] = rounded(each.pair_products / kGiga);
    if (each.tile_products > 0) limit["tile_gflops"] = rounded(each.tile_products / kGiga);
    limit["read_l2_gbs"] = rounded(each.read_l2 / kGiga);
    limit["read_l3_gbs"] = rounded(each.read_l3 / kGiga);
    limit["read_dram_gbs"] = rounded(each.read_dram / kGiga);
    out["limits"].push_back(limit);
  }
  out["rows"] = nlohmann::ordered_json::array();
  nlohmann::ordered_json states = nlohmann::ordered_json::array();
  for (const Row& row : report.rows) {
    out["rows"].push_back(row_json(row));
    if (row.outcome.fast + row.outcome.slow > 0) states.push_back(state_json(row));
  }
  if (!states.empty()) out["tile_states"] = states;
  return out;
}

}  // namespace mh::bench
