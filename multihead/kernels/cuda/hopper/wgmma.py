#!/usr/bin/env python3
"""Writes wgmma.h: one wrapper per shape m64nNk16 with f32 accumulators, for bf16 and f16 operands.

ss: A and B from shared memory. rs: A from registers. tA, tB: 1 where that operand's free dimension is contiguous.
"""
import pathlib

WIDTHS = (64, 80, 96, 112, 128, 192, 256)
TYPES = {"__nv_bfloat16": "bf16.bf16", "__half": "f16.f16"}


def wrapper(width, element, names):
    count = width // 2
    registers = ", ".join(f"%{i}" for i in range(count))
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    shape = f"wgmma.mma_async.sync.aligned.m64n{width}k16.f32.{names}"
    return f"""template <>
struct Wgmma<{width}, {element}> {{
  template <int tA = 0, int tB = 0>
  static __device__ __forceinline__ void ss(float (&d)[{count}], uint64_t a, uint64_t b, int add) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 2}, 0;\\n"
      "{shape} {{{registers}}}, %{count}, %{count + 1}, p, 1, 1, %{count + 3}, %{count + 4};\\n}}\\n"
      : {outputs} : "l"(a), "l"(b), "r"(add), "n"(tA), "n"(tB));
  }}
  template <int tB = 0>
  static __device__ __forceinline__ void rs(float (&d)[{count}], const uint32_t* a, uint64_t b, int add) {{
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 5}, 0;\\n"
      "{shape} {{{registers}}}, {{%{count}, %{count + 1}, %{count + 2}, %{count + 3}}}, %{count + 4}, p, 1, 1, %{count + 6};\\n}}\\n"
      : {outputs} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(tB));
  }}
}};
"""


def main():
    head = """// One wrapper per wgmma shape m64nNk16, f32 accumulators. Written by wgmma.py; edit that.
// clang-format off
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace mh::kernels::cuda {

// d (64 × N) = A (64 × 16) · B (16 × N), plus d where `add` is not 0.
template <int N, class T>
struct Wgmma;

"""
    body = "".join(wrapper(width, element, names) for element, names in TYPES.items() for width in WIDTHS)
    out = pathlib.Path(__file__).with_name("wgmma.h")
    out.write_text(head + body + "\n}  // namespace mh::kernels::cuda\n")


if __name__ == "__main__":
    main()
