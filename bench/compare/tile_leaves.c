// A library to preload: answers the CPUID leaves that describe AMX tiles where the tiles work and a hypervisor hides
// the leaves. oneDNN, and PyTorch with it, reads the sizes of the tiles there, and would load a palette of nothing and
// die at the first tile instruction. Linux makes CPUID fault on request; the handler asks the processor and fills in
// what is hidden.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { kSetCpuid = 0x1012, kPalettes = 0x1d, kMultiplier = 0x1e };

static struct sigaction before;

static long let_cpuid_run(int yes) { return syscall(SYS_arch_prctl, kSetCpuid, yes); }

// What the processor says of a leaf (r: eax, ebx, ecx, edx) becomes what one that hides nothing would say: palette 1,
// eight tiles of 16 rows of 64 bytes, and a multiplier of 16 by 64.
void tile_leaves_fill(uint32_t leaf, uint32_t subleaf, uint32_t r[4]) {
  if (leaf == 0 && r[0] < kMultiplier) r[0] = kMultiplier;
  if (leaf == kPalettes && subleaf == 0) r[0] = 1, r[1] = r[2] = r[3] = 0;
  if (leaf == kPalettes && subleaf == 1) r[0] = 1024u << 16 | 8192, r[1] = 8u << 16 | 64, r[2] = 16, r[3] = 0;
  if (leaf == kMultiplier && subleaf == 0) r[0] = 0, r[1] = 64u << 8 | 16, r[2] = r[3] = 0;
}

// 1 where the processor has tiles and the leaf of their palettes is hidden.
int tile_leaves_hidden(void) {
  uint32_t r[4];
  if (!__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) || !(r[3] & 1u << 24)) return 0;
  return !__get_cpuid_count(kPalettes, 0, &r[0], &r[1], &r[2], &r[3]) || r[0] == 0;
}

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* at = (const unsigned char*)registers[REG_RIP];
  // A page fault has an address, and its instruction may be unreadable; CPUID's fault has none.
  if (info->si_code != SI_KERNEL || at[0] != 0x0f || at[1] != 0xa2) {
    sigaction(signal_number, &before, NULL);  // the instruction runs again, into the handler that was there
    return;
  }
  const uint32_t leaf = (uint32_t)registers[REG_RAX], subleaf = (uint32_t)registers[REG_RCX];
  uint32_t r[4];
  let_cpuid_run(1);
  __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
  let_cpuid_run(0);
  tile_leaves_fill(leaf, subleaf, r);
  registers[REG_RAX] = r[0];
  registers[REG_RBX] = r[1];
  registers[REG_RCX] = r[2];
  registers[REG_RDX] = r[3];
  registers[REG_RIP] += 2;
}

// Threads made later inherit the fault. 0, or -1 where the processor cannot make CPUID fault: then nothing has changed.
int tile_leaves_install(void) {
  static int installed = 0;
  if (installed) return 0;  // a second time `before` would be on_fault itself, and a real fault would go round for ever
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  if (sigaction(SIGSEGV, &action, &before) != 0) return -1;
  installed = let_cpuid_run(0) == 0;
  if (installed) return 0;
  sigaction(SIGSEGV, &before, NULL);
  return -1;
}

__attribute__((constructor)) static void preload(void) {
  if (tile_leaves_hidden()) tile_leaves_install();
}
