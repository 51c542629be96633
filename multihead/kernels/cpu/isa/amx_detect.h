// Whether this process may use AMX tiles for bf16.
#pragma once

namespace mh::kernels {

// Null if tiles work, else what is missing. Asks the kernel for permission once; later calls repeat the answer.
// CPUID leaf 0x1D is not looked at: hypervisors hide it while the tiles work.
const char* amx_missing();

}  // namespace mh::kernels
