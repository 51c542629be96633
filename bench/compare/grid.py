#!/usr/bin/env python3
"""Trains small translators over a grid of sizes and settings on one GPU: what `multihead train --suggest` is set by.

usage: grid.py DATA RESULTS.json [--seconds 290] [--processes 6] [--only WORD …] [--device cuda] [--shrink N]

DATA is what grid_data.py made. Groups of runs (GROUPS, the most telling first) are trained as stacks (stacked.py) by
several processes at once; a group that would not end in time is not begun. Every run is validated 12 times, raw and with
a running mean of its weights; `shipped` is whichever had the lowest loss at any validation, as `multihead train` ships it.
"""
import argparse
import gzip
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import queue as queues
import time
import traceback

import torch

from batches import Ragged
from plain_scores import Bleu, chrf
from seq2seq import BOS, EOS, PAD
from stacked import Stack

VALIDATIONS, LONGEST, RUN = 12, 256, dict(lr=1e-3, dropout=0.2, warmup=0.1, smoothing=0.1, decay=0.01)


def runs(**axes):
    """Every combination of the given values, over RUN."""
    return [{**RUN, **dict(zip(axes, values))} for values in itertools.product(*axes.values())]


def group(pairs, vocabulary, width, tokens, epochs, settings):
    return dict(pairs=pairs, vocabulary=vocabulary, width=width, tokens=tokens, epochs=epochs, runs=settings)


L, D = (5e-4, 1e-3, 2e-3), (0.1, 0.2, 0.3)
SIDE = [{**RUN, "dropout": 0.3, **change} for change in (
    dict(warmup=0.03), dict(warmup=0.25), dict(smoothing=0.0), dict(smoothing=0.2), dict(decay=0.1), dict(dropout=0.4))]
GROUPS = [
    group(29000, 4000, 256, 4096, 30, runs(lr=L, dropout=D) + SIDE),
    group(29000, 8000, 256, 4096, 30, runs(lr=(1e-3, 2e-3), dropout=D)),
    group(29000, 2000, 256, 4096, 30, runs(lr=(1e-3, 2e-3), dropout=D)),
    group(100000, 8000, 256, 4096, 20, runs(lr=(1e-3, 2e-3), dropout=(0.1, 0.2))),
    group(5000, 2000, 256, 2048, 60, runs(lr=L, dropout=(0.2, 0.3, 0.4))),
    group(29000, 4000, 128, 4096, 30, runs(lr=(1e-3, 2e-3, 4e-3), dropout=(0.1, 0.2))),
    group(1000, 1000, 256, 1024, 100, runs(lr=L, dropout=(0.2, 0.3, 0.4))),
    group(1000, 1000, 128, 1024, 100, runs(lr=(1e-3, 2e-3, 4e-3), dropout=(0.1, 0.2, 0.3))),
    group(5000, 1000, 256, 2048, 60, runs(lr=(1e-3, 2e-3), dropout=(0.2, 0.3))),
    group(5000, 2000, 128, 2048, 60, runs(lr=(1e-3, 2e-3, 4e-3), dropout=(0.1, 0.2, 0.3))),
    group(29000, 4000, 256, 4096, 15, runs(lr=(1e-3, 2e-3), dropout=(0.1, 0.2, 0.3))),
    group(100000, 4000, 256, 4096, 20, runs(lr=(1e-3, 2e-3), dropout=(0.1, 0.2))),
    group(29000, 4000, 256, 4096, 60, runs(lr=(1e-3, 2e-3), dropout=(0.3, 0.4))),
    group(5000, 4000, 256, 2048, 60, runs(lr=(1e-3, 2e-3), dropout=(0.2, 0.3))),
    group(1000, 500, 256, 1024, 100, runs(lr=(1e-3, 2e-3), dropout=(0.2, 0.3))),
    group(29000, 1000, 256, 4096, 30, runs(lr=(1e-3, 2e-3), dropout=(0.2, 0.3))),
    group(29000, 4000, 256, 2048, 30, runs(lr=(5e-4, 1e-3), dropout=(0.2, 0.3))),
    group(5000, 2000, 256, 2048, 120, runs(lr=(1e-3, 2e-3), dropout=(0.3, 0.4))),
    group(1000, 2000, 256, 1024, 100, runs(lr=(1e-3, 2e-3), dropout=(0.2, 0.3))),
    group(5000, 2000, 256, 4096, 60, runs(lr=(1e-3, 2e-3), dropout=(0.2, 0.3))),
    group(100000, 8000, 256, 4096, 30, runs(lr=(1e-3, 2e-3), dropout=(0.1, 0.2))),
]


def name_of(g):
    return f"{g['pairs']} pairs, {g['vocabulary']} tokens, width {g['width']}, batch {g['tokens']}, {g['epochs']} epochs"


class Pairs:
    """Ids on the device's side of things: batches of like length, another order each epoch."""

    def __init__(self, ids, device):
        self.source = Ragged([s + [EOS] for s, _ in ids])
        self.target = Ragged([[BOS] + t + [EOS] for _, t in ids])
        self.tokens, self.device = self.target.lengths - 1, device

    def tensors(self, rows):
        source, target = (torch.from_numpy(side.padded(rows)) for side in (self.source, self.target))
        if self.device != "cpu":
            source, target = (x.pin_memory().to(self.device, non_blocking=True) for x in (source, target))
        return source, target[:, :-1].contiguous(), target[:, 1:].contiguous()

    def epoch(self, random, budget):
        """Arrays of pair numbers, of `budget` target tokens at most, in random order."""
        import numpy as np
        order = random.permutation(len(self.tokens))
        order = order[np.lexsort((self.source.lengths[order], self.tokens[order]))]
        batches, begin, total = [], 0, 0
        for i, tokens in enumerate(self.tokens[order].tolist()):
            if i > begin and total + tokens > budget:
                batches.append(order[begin:i])
                begin, total = i, 0
            total += tokens
        batches.append(order[begin:])
        return [batches[i] for i in random.permutation(len(batches))]


class Training:
    """One group: weights, their moments, running mean and the best of either, each (R, P)."""

    def __init__(self, g, data, device):
        self.g, self.device = g, device
        inner, layers = 4 * g["width"], 3
        self.stack = Stack(g["width"], inner, layers, 4, len(data["tokens"]), LONGEST, device)
        self.flat = self.stack.fresh(len(g["runs"])).requires_grad_()
        self.m, self.v = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.mean, self.best = self.flat.detach().clone(), self.flat.detach().clone()
        self.settings = {k: torch.tensor([r[k] for r in g["runs"]], device=device) for k in RUN}
        self.best_loss = torch.full((len(g["runs"]),), torch.inf, device=device)
        self.valid = Pairs(data["valid"], device)
        self.history = []

    def rate(self, step, steps):
        """A linear rise over the share `warmup` of all steps, then along a cosine to 0. (R)"""
        warmup = (self.settings["warmup"] * steps).clamp(min=1)
        progress = ((step - warmup) / (steps - warmup)).clamp(0, 1)
        shape = torch.where(step < warmup, (step + 1) / warmup, (1 + torch.cos(math.pi * progress)) / 2)
        return self.settings["lr"] * shape

    def step(self, batch, step, steps):
        self.stack.open(self.flat, torch.bfloat16 if self.device != "cpu" else torch.float32)
        nll, spread = self.stack.losses(*batch, keep=1 - self.settings["dropout"])
        smoothing = self.settings["smoothing"]
        grad, = torch.autograd.grad(((1 - smoothing) * nll + smoothing * spread).sum(), self.flat)
        with torch.no_grad():
            grad *= (1 / (grad.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1)
            self.m.lerp_(grad, 0.1)
            self.v.mul_(0.98).addcmul_(grad, grad, value=0.02)
            rate = self.rate(step, steps)[:, None]
            update = self.m / (1 - 0.9 ** (step + 1)) / ((self.v / (1 - 0.98 ** (step + 1))).sqrt_() + 1e-8)
            self.flat.mul_(1 - rate * self.settings["decay"][:, None]).addcmul_(update, -rate)
            decay = running_mean_of(steps)
            self.mean.lerp_(self.flat, (1 - decay) / (1 - decay ** (step + 1)))

    @torch.inference_mode()
    def validation(self, flat):
        """nll in nats per target token, f32. (R)"""
        import numpy as np
        self.stack.open(flat, torch.float32)
        total = 0
        for rows in self.valid.epoch(np.random.default_rng(0), 8192):
            total = total + self.stack.losses(*self.valid.tensors(rows))[0] * int(self.valid.tokens[rows].sum())
        return total / int(self.valid.tokens.sum())

    @torch.no_grad()
    def validate(self, step):
        note = {"step": step}
        for kind, flat in (("raw", self.flat.detach()), ("mean", self.mean)):
            loss = self.validation(flat).clone()
            better = loss < self.best_loss
            self.best[better], self.best_loss = flat[better], torch.minimum(loss, self.best_loss)
            note[kind] = [round(x, 4) for x in loss.tolist()]
        self.history.append(note)


def running_mean_of(steps):
    """Decay of the running mean: it looks back over about a tenth of the run."""
    return 1 - 1 / max(10, steps / 10)


def texts_of(training, flat, sources, tokens):
    """[run][sentence]"""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    out = [[""] * len(sources) for _ in range(len(flat))]
    for begin in range(0, len(order), 256):
        rows = order[begin:begin + 256]
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(sources[i] + [EOS]) for i in rows], True, PAD)
        found = training.stack.greedy(flat, ids.to(training.device), LONGEST).tolist()
        for run, sentences in enumerate(found):
            for i, sentence in zip(rows, sentences):
                text = b"".join(tokens[t] for t in sentence).decode("utf-8", "replace")
                out[run][i] = text.removeprefix(" ")
    return out


def scored(training, data, references):
    """Per run: BLEU on valid of the last weights and their mean, BLEU on both sets and chrF of what is shipped."""
    tokens = [bytes.fromhex(t) for t in data["tokens"]]
    result = [{} for _ in training.g["runs"]]
    for part, kinds in (("valid", ("raw", "mean", "shipped")), ("test", ("shipped",))):
        several = {}
        for (source, target), (ids, _) in zip(references[part], data[part]):
            several.setdefault(source, (ids, []))[1].append(target)
        sources, texts = [ids for ids, _ in several.values()], [t for _, t in several.values()]
        bleu = Bleu(texts)
        for kind in kinds:
            flat = {"raw": training.flat.detach(), "mean": training.mean, "shipped": training.best}[kind]
            for run, translations in enumerate(texts_of(training, flat, sources, tokens)):
                result[run][f"{part}/bleu/{kind}"] = round(bleu(translations), 2)
                if part == "test":
                    result[run]["test/chrf/shipped"] = round(chrf(translations, texts), 2)
    return result


def train(g, folder, device, deadline, shrink):
    """The record of a group, or None where it would not end before `deadline`."""
    import numpy as np
    with gzip.open(folder / f"{g['pairs']}.{g['vocabulary']}.json.gz", "rt") as file:
        data = json.load(file)
    with open(folder / "references.json", encoding="utf-8") as file:
        references = json.load(file)
    if shrink > 1:
        data["train"] = data["train"][:g["pairs"] // shrink]
        for part in ("valid", "test"):
            data[part], references[part] = data[part][:40], references[part][:40]
    data["train"] = [p for p in data["train"] if max(map(len, p)) < LONGEST]
    torch.manual_seed(1)
    training, pairs, random = Training(g, data, device), Pairs(data["train"], device), np.random.default_rng(1)
    epochs = [pairs.epoch(random, g["tokens"]) for _ in range(max(1, g["epochs"] // shrink))]
    batches = [rows for epoch in epochs for rows in epoch]
    steps, began, every = len(batches), time.monotonic(), max(1, len(batches) // VALIDATIONS)
    for step, rows in enumerate(batches):
        training.step(pairs.tensors(rows), step, steps)
        if step in (40, 80) and device != "cpu":
            torch.cuda.synchronize()
        if step == 40:  # the first steps load kernels
            warm = time.monotonic()
        if step == 80 and time.time() + (time.monotonic() - warm) / 40 * (steps - step) + 8 > deadline:
            return None
        if (step + 1) % every == 0 or step + 1 == steps:
            training.validate(step + 1)
    seconds = time.monotonic() - began
    rows = scored(training, data, references)
    for row, best, run in zip(rows, training.best_loss.tolist(), g["runs"]):
        row.update(run, **{"valid/loss/shipped": round(best, 4)})
    return {"name": name_of(g), **{k: v for k, v in g.items() if k != "runs"}, "steps": steps,
            "running_mean": running_mean_of(steps), "target_tokens": int(pairs.tokens.sum()),
            "parameters": training.flat.shape[1], "seconds": round(seconds, 1), "runs": rows,
            "validations": training.history}


def work(queue, done, options, deadline):
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_num_threads(2)
    while (number := queue.get()) is not None:
        began = time.time()
        try:
            record = train(GROUPS[number], pathlib.Path(options.data), options.device, deadline, options.shrink)
        except Exception:  # the others go on
            record = {"name": name_of(GROUPS[number]), "error": traceback.format_exc()[-2000:]}
        record = record or {"name": name_of(GROUPS[number]), "error": "no time left"}
        print(f"{time.time() - began:6.1f} s  {record['name']}: {record.get('error', 'done')}", flush=True)
        done.put((number, record))
    done.put(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("results")
    parser.add_argument("--seconds", type=float, default=290)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--only", nargs="*", help="groups whose name contains one of these")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shrink", type=int, default=1, help="so many times fewer pairs and epochs, to try the script")
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    context = multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    for number, g in enumerate(GROUPS):
        if not options.only or any(word in name_of(g) for word in options.only):
            queue.put(number)
    workers = [context.Process(target=work, args=(queue, done, options, deadline)) for _ in range(options.processes)]
    for worker in workers:
        queue.put(None)
        worker.start()
    records, running = {}, len(workers)
    while running and any(worker.is_alive() for worker in workers):
        try:
            record = done.get(timeout=5)
        except queues.Empty:
            continue
        if record is None:
            running -= 1
            continue
        records[record[0]] = record[1]
        machine = torch.cuda.get_device_name() if options.device != "cpu" else "cpu"
        with open(options.results + ".part", "w") as out:
            json.dump({"machine": machine, "torch": torch.__version__,
                       "groups": [records[n] for n in sorted(records)]}, out, indent=1)
        os.replace(options.results + ".part", options.results)


if __name__ == "__main__":
    main()
