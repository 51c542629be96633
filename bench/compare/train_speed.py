#!/usr/bin/env python3
"""Training speed of our program and of the PyTorch twin, taking turns on the same cores: tokens a second and memory."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from machine import has_amx, versions
from report import ratio_table, table, write

HERE = pathlib.Path(__file__).resolve().parent
OURS = ("f32", "bf16")
PEERS = {"PyTorch eager f32": [], "PyTorch compiled f32": ["--compile"], "PyTorch eager bf16": ["--bf16"],
         "PyTorch compiled bf16": ["--bf16", "--compile"]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("multihead", help="the program")
    parser.add_argument("--batch", type=int, default=32, help="sentence pairs a step")
    parser.add_argument("--length", type=int, default=32, help="tokens a sentence, source and target")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5, help="turns each program takes")
    parser.add_argument("--steps", type=int, default=10, help="steps of a turn")
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out, where it cannot build")
    parser.add_argument("--output", default=str(HERE.parent / "results" / "compare"), help="folder of the record")
    parser.add_argument("--check", action="store_true", help="fail where a bar is missed")
    return parser.parse_args()


class Twin:
    """A twin that waits, warm, for its turn."""

    def __init__(self, options, config, flags):
        command = [sys.executable, HERE / "twin.py", config, "--threads", options.threads, "--serve", "--speed",
                   options.batch, options.length, options.steps, *flags]
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.said, text=True)
        if self.process.stdout.readline().strip() != "ready":
            self.said.seek(0)
            raise SystemExit(f"{self.said.read()}\ntrain_speed: `{' '.join(map(str, command))}` failed")

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def our_turn(options, precision):
    """One run of the program, warm-up apart."""
    command = [options.multihead, "bench", "train", "--batch", options.batch, "--length", options.length, "--steps",
               options.steps, "--precision", precision, "--threads", options.threads, "--json"]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"train_speed: `{' '.join(map(str, command))}` failed")
    found = json.loads(done.stdout)
    return {"tokens_per_second": found["tokens_per_second"], "peak_mib": round(found["peak_bytes"] / 2**20),
            "start_mib": 0}


def ratios(rows):
    """(what, ratio, bar, whether it holds); bar None: said, not judged."""
    speed = {name: row["tokens_per_second"] for name, row in rows.items()}
    fastest = {p: max(v for k, v in speed.items() if k.startswith("PyTorch") and k.endswith(p)) for p in OURS}
    least = min(row["peak_mib"] for name, row in rows.items() if name.startswith("PyTorch"))
    best = max(OURS, key=lambda p: speed[f"multihead {p}"])
    f32, bf16 = (speed[f"multihead {p}"] / fastest[p] for p in OURS)
    overall = speed[f"multihead {best}"] / max(fastest.values())
    beyond = min(row["peak_mib"] - row["start_mib"] for name, row in rows.items() if name.startswith("PyTorch"))
    ours = rows["multihead f32"]["peak_mib"]
    return [("tokens/s, multihead f32 / fastest PyTorch f32", f32, 2.0, f32 >= 2.0),
            ("tokens/s, multihead bf16 / fastest PyTorch bf16", bf16, *((4.0, bf16 >= 4.0) if has_amx() else (None, True))),
            (f"tokens/s, multihead {best} / fastest PyTorch of all", overall, 2.0, overall >= 2.0),
            ("peak memory, multihead f32 / least of PyTorch", ours / least, 0.7, ours / least <= 0.7),
            ("peak memory, multihead f32 / least of PyTorch beyond what importing it takes", ours / beyond, None, True)]


def measure(options, config):
    peers = {name: flags for name, flags in PEERS.items() if not (options.eager and "--compile" in flags)}
    twins = {name: Twin(options, config, flags) for name, flags in peers.items()}
    turns = {name: [] for name in [f"multihead {p}" for p in OURS] + list(peers)}
    for _ in range(options.rounds):
        for precision in OURS:
            turns[f"multihead {precision}"].append(our_turn(options, precision))
        for name, twin in twins.items():
            turns[name].append(twin.turn())
    for twin in twins.values():
        twin.close()
    return {name: {"tokens_per_second": statistics.median(t["tokens_per_second"] for t in found),
                   "slowest": min(t["tokens_per_second"] for t in found),
                   "fastest": max(t["tokens_per_second"] for t in found),
                   "peak_mib": max(t["peak_mib"] for t in found),
                   "start_mib": found[0]["start_mib"]} for name, found in turns.items()}


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "small.toml"
        config.write_text("")  # the defaults are the model `small`
        rows = measure(options, config)
    facts = {**versions(), "threads": options.threads, "batch": options.batch, "length": options.length,
             "rounds": options.rounds, "eager": options.eager}
    judged = ratios(rows)
    lines = [f"{facts['processor']}, {options.threads} threads, {options.batch}×{options.length} tokens a step, "
             f"PyTorch {facts['torch']}{' without torch.compile' if options.eager else ''}; "
             f"medians of {options.rounds} turns.", ""]
    lines += table(["program", "tokens/s", "slowest – fastest", "peak MiB"],
                   [[name, f"{r['tokens_per_second']:,.0f}", f"{r['slowest']:,.0f} – {r['fastest']:,.0f}",
                     f"{r['peak_mib']:,}"] for name, r in rows.items()])
    write(options.output, "train", lines + [""] + ratio_table(judged), {"facts": facts, "rows": rows}, judged)
    if options.check and not all(holds for *_, holds in judged):
        sys.exit("train_speed: a bar is missed")


if __name__ == "__main__":
    main()
