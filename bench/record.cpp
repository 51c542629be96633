// The files of record: one JSON and one page per kind of machine, rows of earlier runs kept until measured again.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/machine_facts.h"
#include "bench/report.h"
#include "multihead/base/error.h"
#include "multihead/io/durable_file.h"

namespace mh::bench {
namespace {

using Json = nlohmann::ordered_json;

// What a row is about, whatever it measured.
std::string identity(const Json& row) {
  std::string out;
  for (const char* key : {"case", "dtype", "pass", "B", "H", "Hkv", "Tq", "Tk", "Dk", "Dv", "mask", "threads", "rung"})
    out += row.value(key, Json()).dump() + "|";
  return out;
}

Json read_earlier(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) return Json::object();
  Json earlier = Json::parse(in, nullptr, false);
  if (earlier.is_discarded() || !earlier.is_object())
    fail(ErrorKind::io, "bench: {} is there and is not JSON; move it away to record anew", path.string());
  return earlier;
}

// New rows take the place of old ones of the same identity; the others stay, where they stood.
Json merged(const Json& earlier, const Json& fresh) {
  Json out = Json::array();
  std::set<std::string> placed;
  for (const Json& old : earlier) {
    const std::string id = identity(old);
    const Json* now = nullptr;
    for (const Json& row : fresh)
      if (identity(row) == id) now = &row;
    out.push_back(now ? *now : old);
    placed.insert(id);
  }
  for (const Json& row : fresh)
    if (!placed.contains(identity(row))) out.push_back(row);
  return out;
}

std::string page_row(const Json& row) {
  const auto number = [&](const char* key) { return row.value(key, 0.0); };
  const auto size = [&](const char* key) { return row.value(key, int64_t{0}); };
  return fmt::format("| {} | {} | {} | {} | {}/{} | {}:{} | {}:{} | {} | {} | {} | {:.4g} {} | {:.3f} | {:.3f} |\n",
                     row.value("case", ""), row.value("dtype", ""), row.value("pass", ""), size("B"), size("H"),
                     size("Hkv"), size("Tq"), size("Tk"), size("Dk"), size("Dv"), row.value("mask", ""),
                     size("threads"), row.value("rung", ""), number("rate"), row.value("unit", ""), number("fraction"),
                     number("fraction_p90"));
}

std::string bf16_limit(const Json& limit) {
  const double rate = limit.value("tile_gflops", limit.value("pair_gflops", 0.0));
  return rate > 0 ? fmt::format("{:.4g}", rate) : "none";
}

std::string page(const Json& report) {
  const Json& machine = report.at("machine");
  std::string out = fmt::format("# {}\n\n", machine.value("cpu", "unknown CPU"));
  out += fmt::format(
      "Written by `multihead bench … --record`. Family {}, model {}, {} CPUs allowed, rung {}, multihead {}.\n"
      "A fraction is the rate over that of the reference loop around each trial (multiply-adds, pair or tile "
      "products, or a plain\n"
      "read of the same memory); the median and the 90th percentile of the trials are given.\n\n",
      machine.value("family", 0), machine.value("model", 0), machine.value("cpus_allowed", 0),
      machine.value("rung", ""), report.value("version", ""));
  out +=
      "| rung | threads | f32 FMA GFLOP/s | bf16 pairs or tiles GFLOP/s | read L2 | L3 | DRAM GB/s "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const Json& limit : report.at("limits"))
    out += fmt::format("| {} | {} | {:.4g} | {} | {:.4g} | {:.4g} | {:.4g} |\n", limit.value("rung", ""),
                       limit.value("threads", 1), limit.value("fma_gflops", 0.0), bf16_limit(limit),
                       limit.value("read_l2_gbs", 0.0), limit.value("read_l3_gbs", 0.0),
                       limit.value("read_dram_gbs", 0.0));
  out += "\n| case | dtype | pass | B | H/Hkv | Tq:Tk | Dk:Dv | mask | threads | rung | rate | fraction | p90 |\n";
  out += "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Json& row : report.at("rows")) out += page_row(row);
  return out;
}

// One object or row a line: differences between runs are then readable.
std::string lined(const Json& report) {
  std::string out = "{\n";
  for (auto entry = report.begin(); entry != report.end(); ++entry) {
    if (entry != report.begin()) out += ",\n";
    out += Json(entry.key()).dump() + ": ";
    if (!entry->is_array()) {
      out += entry->dump();
      continue;
    }
    out += "[";
    for (size_t i = 0; i < entry->size(); ++i) out += (i ? ",\n  " : "\n  ") + (*entry)[i].dump();
    out += "\n]";
  }
  return out + "\n}\n";
}

}  // namespace

std::filesystem::path record(const Report& report, const std::filesystem::path& folder) {
  make_folder(folder.string());
  const std::filesystem::path path = folder / (slug(machine_facts()) + ".json");
  const Json earlier = read_earlier(path), fresh = to_json(report);
  Json out;
  out["version"] = MH_VERSION;
  out["machine"] = fresh.at("machine");
  // A kind of machine is recorded, not this one.
  out["machine"].erase("kernel");
  out["limits"] = merged(earlier.value("limits", Json::array()), fresh.at("limits"));
  out["rows"] = merged(earlier.value("rows", Json::array()), fresh.at("rows"));
  if (fresh.contains("tile_states") || earlier.contains("tile_states"))
    out["tile_states"] = merged(earlier.value("tile_states", Json::array()), fresh.value("tile_states", Json::array()));
  write_durably(path.string(), lined(out));
  std::filesystem::path beside = path;
  write_durably(beside.replace_extension(".md").string(), page(out));
  return path;
}

}  // namespace mh::bench
