#!/usr/bin/env python3
"""The losses of the first steps by our program and by the twin, from the same weights: f32, no dropout."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from report import table

HERE = pathlib.Path(__file__).resolve().parent
BAR = 1e-4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("multihead", help="the program")
    parser.add_argument("config", help="the TOML file of `multihead train`")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="over the file")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"first_losses: `{' '.join(map(str, command))}` failed: {done.stderr.strip()}")


def losses(folder):
    lines = (json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines())
    return [line["train/loss"] for line in lines if "train/loss" in line]


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        start, ours, twin = (pathlib.Path(folder) / name for name in ("start", "ours", "twin"))

        def changes(output, **more):
            settings = {"model.dropout": 0.0, "train.precision": "f32", "train.steps": options.steps, "data.valid": "",
                        "train.threads": options.threads, "train.output": output, **more}
            given = options.set + [f"{key}={value}" for key, value in settings.items()]
            return [word for change in given for word in ("--set", change)]

        # One step too small to change an f32 leaves the weights a run begins with.
        tiny = {"train.steps": 1, "optimizer.learning_rate": 1e-30}
        run([options.multihead, "train", options.config, *changes(str(start), **tiny)])
        same = {"tokenizer.path": str(start / "tokenizer.json")}
        run([options.multihead, "train", options.config, *changes(str(ours), **same)])
        run([sys.executable, HERE / "twin.py", options.config, *changes(str(twin), **same), "--threads",
             options.threads, "--weights", start / "model.safetensors"])
        pairs = list(zip(losses(ours), losses(twin), strict=True))
    print("\n".join(table(["step", "multihead", "PyTorch", "difference"],
                          [[str(i + 1), f"{a:.6f}", f"{b:.6f}", f"{abs(a - b):.1e}"]
                           for i, (a, b) in enumerate(pairs)])))
    worst = max(abs(a - b) for a, b in pairs)
    if len(pairs) != options.steps or worst > BAR:
        sys.exit(f"first_losses: {len(pairs)} steps, {worst:.1e} apart at most; expected {options.steps} within {BAR:g}")
    print(f"\nat most {worst:.1e} apart")


if __name__ == "__main__":
    main()
