// What the machine is, as the system tells it: model, CPUs this process may use, caches, instruction sets, memory.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "multihead/ops/machine.h"

namespace mh::bench {

struct InstructionSet {
  std::string name;
  bool present = false;
  std::string use;  // what the library does with it
};

// What the system does not tell stays empty or 0.
struct MachineFacts {
  CpuInfo cpu;
  std::string vendor, architecture, kernel;
  int family = 0, model_number = 0;
  bool hypervisor = false;
  int cpus_online = 0;
  std::vector<InstructionSet> instructions;
  int64_t memory = 0;      // bytes
  std::string huge_pages;  // always, madvise, never
};
MachineFacts machine_facts();

// For names of files: "amd-epyc-f25-m17". Family and model stand there because hypervisors shorten the name.
std::string slug(const MachineFacts& facts);

// With the number of threads, and MH_CPU_ISA and MH_THREADS where they are set.
nlohmann::ordered_json to_json(const MachineFacts& facts);

}  // namespace mh::bench
