// Whether this process may use AMX tiles for bf16.
#include "multihead/kernels/cpu/isa/amx_detect.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace mh::kernels {
namespace {

constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
constexpr unsigned kOsXsave = 1u << 27;
constexpr uint64_t kTileState = (1u << 17) | (1u << 18);
constexpr int kRequestPermission = 0x1023, kTileData = 18;

uint64_t enabled_state() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

sigjmp_buf escape;
void on_illegal(int) { siglongjmp(escape, 1); }

// Runs the instructions once: 2 · 3 + 2 · 3 over 16 pairs.
bool tiles_multiply() {
  struct alignas(64) {
    uint8_t palette = 1, start = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64};
    uint8_t rows[16] = {16, 16, 16};
  } config;
  alignas(64) uint16_t a[512], b[512];
  alignas(64) float c[256] = {};
  for (int n = 0; n < 512; ++n) a[n] = 0x4000, b[n] = 0x4040;
  const int64_t row = 64;
  asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
  asm volatile(
      "tilezero %%tmm0\n tileloadd (%0,%3,1), %%tmm1\n tileloadd (%1,%3,1), %%tmm2\n"
      "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n tilestored %%tmm0, (%2,%3,1)\n tilerelease" ::"r"(a),
      "r"(b), "r"(c), "r"(row)
      : "memory");
  return c[0] == 192.0f && c[255] == 192.0f;
}

// A hypervisor may announce what it does not let through.
bool tiles_work() {
  struct sigaction guard, before;
  memset(&guard, 0, sizeof guard);
  guard.sa_handler = on_illegal;
  if (sigaction(SIGILL, &guard, &before) != 0) return false;
  volatile bool works = false;
  if (sigsetjmp(escape, 1) == 0) works = tiles_multiply();
  sigaction(SIGILL, &before, nullptr);
  return works;
}

const char* look() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kOsXsave)) return "no XSAVE";
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return "no CPUID leaf 7";
  if (!(d & kAmxTile)) return "the CPU has no AMX tiles";
  if (!(d & kAmxBf16)) return "the CPU has no AMX bf16";
  if ((enabled_state() & kTileState) != kTileState) return "the operating system does not keep the tile state";
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return "the kernel refuses permission for tile data";
  if (!tiles_work()) return "the tile instructions fail although CPUID names them";
  return nullptr;
}

}  // namespace

const char* amx_missing() {
  static const char* const answer = look();
  return answer;
}

}  // namespace mh::kernels

#else

namespace mh::kernels {
const char* amx_missing() { return "this is not x86-64 Linux"; }
}  // namespace mh::kernels

#endif
