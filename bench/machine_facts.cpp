// Reads /proc and /sys.
#include "bench/machine_facts.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "multihead/base/parallel.h"

namespace mh::bench {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// The first processor's lines of /proc/cpuinfo.
std::map<std::string, std::string> processor_lines() {
  std::ifstream in("/proc/cpuinfo");
  std::map<std::string, std::string> info;
  for (std::string line; std::getline(in, line) && !(line.empty() && !info.empty());) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos) info.emplace(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
  return info;
}

bool has(const CpuInfo& cpu, const std::string& feature) {
  return std::find(cpu.features.begin(), cpu.features.end(), feature) != cpu.features.end();
}

std::vector<InstructionSet> known_instructions(const CpuInfo& cpu) {
  std::vector<InstructionSet> sets = {
      {"sse4_2", false, "rung baseline"},
      {"avx2", false, "rung avx2"},
      {"fma", false, "rung avx2"},
      {"f16c", false, "rung avx2: f16 storage"},
      {"avx512f", false, "rung avx512"},
      {"avx512bw", false, "rung avx512"},
      {"avx512dq", false, "rung avx512"},
      {"avx512vl", false, "rung avx512"},
      {"avx512_bf16", false, "rung avx512_bf16: bf16 matrix products and attention; rung amx"},
      {"amx_tile", false, "rung amx"},
      {"amx_bf16", false, "rung amx: bf16 matrix products"},
  };
  if (has(cpu, "asimd")) sets = {{"asimd", false, "rung neon"}};
  for (InstructionSet& set : sets) set.present = has(cpu, set.name);
  return sets;
}

std::string chosen_word(const std::string& line) {
  const size_t open = line.find('['), close = line.find(']');
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

}  // namespace

MachineFacts machine_facts() {
  MachineFacts facts;
  const auto info = processor_lines();
  const auto value = [&](const char* key) { return info.contains(key) ? info.at(key) : std::string(); };
  facts.cpu = mh::cpu_info();
  facts.vendor = value("vendor_id");
  facts.family = std::atoi(value("cpu family").c_str());
  facts.model_number = std::atoi(value("model").c_str());
  facts.instructions = known_instructions(facts.cpu);
  facts.hypervisor = has(facts.cpu, "hypervisor");

  utsname system{};
  if (uname(&system) == 0) {
    facts.architecture = system.machine;
    facts.kernel = fmt::format("{} {}", system.sysname, system.release);
  }
  facts.cpus_online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  facts.memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  facts.huge_pages = chosen_word(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  return facts;
}

std::string slug(const MachineFacts& facts) {
  std::string out;
  for (char c : facts.cpu.model.empty() ? facts.architecture : facts.cpu.model) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return facts.family > 0 ? fmt::format("{}-f{}-m{}", out, facts.family, facts.model_number) : out;
}

nlohmann::ordered_json to_json(const MachineFacts& facts) {
  nlohmann::ordered_json out;
  out["cpu"] = facts.cpu.model;
  out["vendor"] = facts.vendor;
  out["family"] = facts.family;
  out["model"] = facts.model_number;
  out["architecture"] = facts.architecture;
  out["kernel"] = facts.kernel;
  out["hypervisor"] = facts.hypervisor;
  out["cpus_online"] = facts.cpus_online;
  out["cpus_allowed"] = facts.cpu.cores;
  out["memory_bytes"] = facts.memory;
  out["huge_pages"] = facts.huge_pages;
  out["caches"] = nlohmann::ordered_json::array();
  for (const CacheInfo& cache : facts.cpu.caches)
    out["caches"].push_back(
        {{"level", cache.level}, {"type", cache.type}, {"bytes", cache.bytes}, {"shared_by", cache.shared_by}});
  out["instructions"] = nlohmann::ordered_json::object();
  for (const InstructionSet& set : facts.instructions) out["instructions"][set.name] = set.present;
  out["threads"] = threads();
  for (const char* variable : {"MH_CPU_ISA", "MH_THREADS"})
    if (const char* value = std::getenv(variable)) out[variable] = value;
  return out;
}

}  // namespace mh::bench
