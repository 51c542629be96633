#!/usr/bin/env python3
"""Races every configuration of the wgmma kernels in each cell of the table: what plan.h should choose.

usage: tune.py LIBRARY [--d D] [--s S]... [--rounds N]
"""
import argparse
import ctypes

import torch

import table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--d", type=int, action="append")
    parser.add_argument("--s", type=int, action="append")
    parser.add_argument("--rounds", default=3, type=int)
    args = parser.parse_args()
    library = ctypes.CDLL(args.library)
    for D in args.d or (128, 64):
        for causal in (False, True):
            for S in args.s or (512, 1024, 2048, 4096, 8192, 16384):
                q, k, v, d_o = (torch.randn(16384 // S, 2048 // D, S, D, device="cuda", dtype=torch.bfloat16) for _ in range(4))
                shapes = [[n for n in range(library.mh_shape_count(kernel)) if library.mh_shape_takes(kernel, n, 1, D, int(causal))] for kernel in range(3)]
                plain = table.Ours(library, q, k, v, d_o, causal)
                planned = [library.mh_planned_shape(kernel, ctypes.byref(plain.call)) for kernel in range(3)]
                plain.forward()
                where = f"D{D} {'causal' if causal else 'full'} S{S}"

                def one(forward, dq, dkv):
                    ours = table.Ours(library, q, k, v, d_o, causal)
                    ours.tensors["o"].copy_(plain.tensors["o"])
                    ours.tensors["lse"].copy_(plain.tensors["lse"])
                    ours.call.forward_shape, ours.call.dq_shape, ours.call.dkv_shape = forward, dq, dkv
                    return ours

                for kernel, name in enumerate(("forward", "dq", "dkv")):
                    runs = [one(*(n if at == kernel else planned[at] for at in range(3))) for n in shapes[kernel]]
                    t = table.race([r.forward if kernel == 0 else r.backward for r in runs], args.rounds)
                    base = t[shapes[kernel].index(planned[kernel])]
                    text = "  ".join(f"{n}{'*' if n == planned[kernel] else ''}: {base / x:.3f}" for n, x in zip(shapes[kernel], t))
                    print(f"{where} {name}: {text}", flush=True)


if __name__ == "__main__":
    main()
