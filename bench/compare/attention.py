#!/usr/bin/env python3
"""Attention beside PyTorch's and others', taking turns in one process for each number of threads.

usage: python3 bench/compare/attention.py [--threads 1 2] [--kinds forward backward decode …] [--dtypes f32 bf16] …
What is measured is merged into the record of this machine; the rest of it stays. Leave the machine alone meanwhile.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("forward", "backward", "decode", "dropout", "widths", "others", "weights", "encoder")
PAUSE = 0.004  # seconds: the threads of whoever ran last have gone to sleep


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--dtypes", nargs="+", choices=("f32", "bf16"), default=["f32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5, help="turns each takes in a cell")
    parser.add_argument("--output", default=str(HERE.parent / "results" / "compare"), help="folder of the record")
    parser.add_argument("--check", action="store_true", help="fail where a bar is missed")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def take_turns(calls, rounds):
    """The median seconds of each call. A turn is as many calls as fill half a millisecond."""
    counts = []
    for call in calls:
        call()
        began = time.perf_counter()
        call()
        counts.append(max(1, int(5e-4 / max(time.perf_counter() - began, 1e-7))))
    times = [[] for _ in calls]
    for _ in range(rounds):
        for call, count, kept in zip(calls, counts, times):
            time.sleep(PAUSE)
            call()
            began = time.perf_counter()
            for _ in range(count):
                call()
            kept.append((time.perf_counter() - began) / count)
    return [statistics.median(kept) for kept in times]


def measure_cells(options, threads):
    from attention_cells import cells
    from attention_peers import agree, ours, pytorch

    kinds = [k for k in options.kinds if k in ("forward", "backward", "decode", "dropout", "widths")]
    for cell in cells(kinds, options.dtypes):
        us, them = ours(cell), pytorch(cell)
        if cell.kind != "dropout":
            difference, allowed = agree(cell, us(), them())
            if difference > allowed:
                raise SystemExit(f"attention: {cell} differs by {difference:.2e}, more than {allowed:.2e}")
        mine, theirs = take_turns([us, them], options.rounds)
        yield {**cell.fields(), "threads": threads, "peer": "PyTorch", "us": 1e6 * mine, "peer_us": 1e6 * theirs}


def measure_others(options, threads):
    from attention_cells import Cell
    from attention_peers import agree, ours, present

    for T in (128, 512, 2048):
        for mask in ("full", "causal"):
            cell = Cell("forward", "f32", 64, T, mask, 1, 8)
            us = ours(cell)
            for name, make in present().items():
                try:
                    them = make(cell)
                    difference, allowed = agree(cell, us(), them())
                except Exception as error:  # a peer that does not run here is no reason to stop
                    print(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", flush=True)
                    continue
                if difference > allowed:
                    raise SystemExit(f"attention: {name} differs by {difference:.2e} in {cell}, more than {allowed:.2e}")
                mine, theirs = take_turns([us, them], options.rounds)
                yield {**cell.fields(), "kind": "others", "threads": threads, "peer": name, "us": 1e6 * mine, "peer_us": 1e6 * theirs}


def child(options):
    """Measures on so many CPUs and writes rows as lines of JSON."""
    threads = options.child
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import torch

    import multihead
    torch.set_num_threads(threads)
    multihead.set_threads(threads)
    from attention_models import measure_encoder, measure_weights
    parts = [measure_cells(options, threads)]
    if "others" in options.kinds:
        parts.append(measure_others(options, threads))
    if "weights" in options.kinds:
        parts.append(measure_weights(options, threads, take_turns))
    if "encoder" in options.kinds:
        parts.append(measure_encoder(options, threads, take_turns))
    for part in parts:
        for row in part:
            print("row " + json.dumps(row), flush=True)


def measured(threads, preload):
    """The rows that a process of its own measures with so many threads."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "MH_THREADS"), str(threads))
    command = [sys.executable, __file__, *sys.argv[1:], "--child", str(threads)]
    running = subprocess.Popen(command, env={**os.environ, **preload, **limits}, stdout=subprocess.PIPE, text=True)
    for line in running.stdout:
        if line.startswith("row "):
            yield json.loads(line[4:])
        else:
            print(line, end="", flush=True)
    if running.wait() != 0:
        raise SystemExit(f"attention: measuring with {threads} threads failed")


def main():
    options = arguments()
    if options.child:
        return child(options)
    from attention_report import finish
    from tile_leaves import preloaded

    with tempfile.TemporaryDirectory() as folder:
        preload = preloaded(folder)
        rows = [row for threads in options.threads for row in measured(threads, preload)]
    held = finish(options.output, rows)
    if options.check and not held:
        raise SystemExit("attention: a bar was missed")


if __name__ == "__main__":
    main()
