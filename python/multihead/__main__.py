"""python -m multihead doctor: what this machine has and which kernels it will use."""

import argparse
import importlib.metadata
import json
import os
import platform
import sys

import multihead
from multihead import _core

PEERS = ("numpy", "ml_dtypes", "torch", "transformers")


def facts():
    """Everything doctor says, as plain data."""
    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    machine = multihead.machine()
    rungs = [{"name": name, "usable": usable, "why": why} for name, usable, why in machine["rungs"]]
    environment = {name: os.environ.get(name) for name in ("MH_CPU_ISA", "MH_THREADS", "MULTIHEAD_CUDA_LIBRARY")}
    return {
        "build": multihead.build_info(),
        "python": platform.python_version(),
        "packages": found,
        "cpu": machine["cpu"],
        "cpus": machine["cpus"],
        "threads": multihead.threads(),
        "rung": machine["rung"],
        "rungs": rungs,
        "gpu": _core.gpu_facts(),
        "environment": environment,
    }


def check():
    """A small call against the three steps in double precision; the largest difference."""
    import numpy as np

    q, k, v = np.random.default_rng(1).standard_normal((3, 1, 2, 33, 16), dtype=np.float32)
    got = multihead.attention(q, k, v)
    s = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 4
    p = np.exp(s - s.max(-1, keepdims=True))
    return float(np.abs(p / p.sum(-1, keepdims=True) @ v - got).max())


def doctor(as_json):
    said = facts()
    said["error"] = check()
    if as_json:
        print(json.dumps(said, indent=2))
        return said["error"] < 1e-5
    build = said["build"]
    abi = "stable ABI" if build["stable_abi"] else "ABI of this Python"
    line = lambda name, text: print(f"{name:<14}{text}")
    print(f"multihead {build['version']}\n")
    line("built by", f"{build['compiler']}, nanobind {build['nanobind']}, {abi}")
    line("Python", said["python"])
    line("packages", ", ".join(f"{name} {version or 'not installed'}" for name, version in said["packages"].items()))
    line("CPU", said["cpu"] or platform.machine())
    line("CPUs", f"{said['cpus']} may be used, by {said['threads']} threads")
    gpu = said["gpu"]
    if gpu["name"]:
        line("GPU", f"{gpu['name']}, {gpu['memory'] / 2**30:.1f} GiB, compute capability {gpu['compute_capability']}, driver for CUDA {gpu['driver']}")
    else:
        line("GPU", "none")
    line("  kernels", f"{gpu['library']}, built with CUDA {gpu['toolkit']}" if gpu["library"] else "none")
    if gpu["missing"]:
        line("  missing", gpu["missing"])
    for name, value in said["environment"].items():
        line(name, f"{'' if len(name) < 14 else '  '}{value or 'not set'}")
    print("\nRungs of the ladder, lowest first")
    wide = max(len(rung["name"]) for rung in said["rungs"]) + 2
    for rung in said["rungs"]:
        state = "in use" if rung["name"] == said["rung"] else "usable" if rung["usable"] else "missing"
        print(f"  {rung['name']:<{wide}}{state:<8}  {rung['why']}".rstrip())
    good = said["error"] < 1e-5
    print(f"\nA call against double precision: largest difference {said['error']:.1e}, {'good' if good else 'WRONG'}")
    return good


def main():
    parser = argparse.ArgumentParser(prog="python -m multihead", description="Attention on the CPU, for Python.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("doctor", help="what this machine has, which kernels it will use, whether they work")
    verb.add_argument("--json", action="store_true", help="print JSON")
    sys.exit(0 if doctor(parser.parse_args().json) else 1)


if __name__ == "__main__":
    main()
