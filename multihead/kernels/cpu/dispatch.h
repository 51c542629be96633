// The ladder of instruction sets: which rungs this machine can climb, and the table of the one in use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/kernels/limits.h"
#include "multihead/kernels/table.h"

namespace mh::kernels {

enum class Rung { baseline, avx2, avx512, avx512_bf16, amx, neon };

std::string_view name(Rung rung);
std::optional<Rung> rung_named(std::string_view name);

struct RungStatus {
  Rung rung;
  bool usable;
  std::string why;  // what the machine lacks, or empty
};
// All rungs compiled in, lowest first. The software twin of AMX is not a rung: see amx_twin().
std::vector<RungStatus> rungs();

// The table in use: the highest usable rung, stopped by MH_CPU_ISA (a rung's name), or what use_rung chose.
const Table& cpu();
// The measuring loops of the rung in use.
const Probes& probes();
Rung rung();
// Throws: invalid_argument where this machine cannot run it.
void use_rung(Rung rung);

// The amx rung with every tile instruction done in software; needs avx512. Null where the machine lacks that.
const Table* amx_twin();
// Times every kernel of the rung in use (profile.h), or stops doing so.
void use_profile(bool on);
// Takes the twin's table into use (tests only), or back to the rung.
void use_amx_twin(bool on);

}  // namespace mh::kernels
