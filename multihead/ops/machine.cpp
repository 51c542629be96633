// The rungs by name, and what Linux tells about the CPU.
#include "multihead/ops/machine.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "multihead/base/cpu_set.h"
#include "multihead/base/error.h"
#include "multihead/kernels/cpu/dispatch.h"

namespace mh {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "48K", "2048K", "1M".
int64_t bytes_of(const std::string& text) {
  std::istringstream in(text);
  int64_t number = 0;
  char unit = 0;
  in >> number >> unit;
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : number;
}

// "0-3,8": how many numbers it names.
int count_of(const std::string& list) {
  std::istringstream in(list);
  int count = 0;
  for (std::string range; std::getline(in, range, ',');) {
    int first = 0, last = 0;
    char dash = 0;
    std::istringstream part(range);
    part >> first;
    count += part >> dash >> last ? last - first + 1 : 1;
  }
  return count;
}

std::vector<CacheInfo> caches() {
  std::vector<CacheInfo> out;
  const std::filesystem::path folder = "/sys/devices/system/cpu/cpu0/cache";
  std::error_code none;
  for (int n = 0; std::filesystem::exists(folder / fmt::format("index{}", n), none); ++n) {
    const std::filesystem::path index = folder / fmt::format("index{}", n);
    CacheInfo cache;
    cache.level = static_cast<int>(bytes_of(first_line(index / "level")));
    cache.type = first_line(index / "type");
    cache.bytes = bytes_of(first_line(index / "size"));
    cache.shared_by = count_of(first_line(index / "shared_cpu_list"));
    out.push_back(cache);
  }
  return out;
}

}  // namespace

std::vector<RungInfo> machine_rungs() {
  std::vector<RungInfo> out;
  for (const kernels::RungStatus& status : kernels::rungs()) {
    out.push_back({std::string(kernels::name(status.rung)), status.usable, status.why});
  }
  return out;
}

std::string_view rung_name() { return kernels::kernels_of(Device{}).rung; }

void use_rung(std::string_view name) {
  const auto rung = kernels::rung_named(name);
  check(rung.has_value(), "use_rung: no rung is named '{}'; expected baseline, avx2, avx512, avx512_bf16, amx or neon",
        name);
  kernels::use_rung(*rung);
}

CpuInfo cpu_info() {
  CpuInfo info;
  info.cores = static_cast<int>(allowed_cpus().size());
  info.caches = caches();
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) {
      if (line.empty()) break;
      continue;
    }
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    std::istringstream value(line.substr(colon + 1));
    if (key == "model name") std::getline(value >> std::ws, info.model);
    if (key != "flags" && key != "Features") continue;
    for (std::string feature; value >> feature;) info.features.push_back(feature);
  }
  return info;
}

}  // namespace mh
