// The machine as the library sees it: its rungs, which one is in use, and the CPU behind them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

// An instruction set the library has kernels for.
struct RungInfo {
  std::string name;  // baseline, avx2, avx512, avx512_bf16, amx, neon
  bool usable = false;
  std::string why;  // what the machine lacks, or empty
};
// All rungs compiled in, lowest first.
std::vector<RungInfo> machine_rungs();

// The rung in use: the highest usable one, stopped by MH_CPU_ISA (a rung's name), or what use_rung chose.
std::string_view rung_name();
// Throws: invalid_argument where there is no such rung, or the machine cannot run it.
void use_rung(std::string_view name);

// Whether ops read the numbers in tensors of other devices than the CPU to check them, which waits for the device:
// targets, ids of tokens, positions. Off at first; those of the CPU are always checked.
void check_contents_everywhere(bool on);

struct CacheInfo {
  int level = 0;
  std::string type;  // Data, Instruction, Unified
  int64_t bytes = 0;
  int shared_by = 0;  // hardware threads that share one
};

// What the system says of its CPU; what it does not say is empty or 0.
struct CpuInfo {
  std::string model;
  int cores = 0;                      // hardware threads this process may run on
  std::vector<CacheInfo> caches;      // of the first CPU
  std::vector<std::string> features;  // names as the system spells them
};
CpuInfo cpu_info();

}  // namespace mh
