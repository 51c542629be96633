#!/usr/bin/env python3
"""The twin of `multihead train` in PyTorch: the same model, data order and schedule, for speed and quality side by side."""
import argparse
import contextlib
import copy
import json
import math
import pathlib
import time

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from batches import Pairs, read_columns, read_references
from decode import translate
from machine import peak_memory, versions
from score import scores
from seq2seq import EOS, Seq2Seq, smoothed_loss
from settings import read_settings
from speed import measure


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", help="the TOML file of `multihead train`")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="over the file")
    parser.add_argument("--tokenizer", help="tokenizer.json; default: tokenizer.path")
    parser.add_argument("--weights", help="initial weights (safetensors); default: PyTorch's draws from train.seed")
    parser.add_argument("--output", help="folder for weights and metrics; default: train.output")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--bf16", action="store_true", help="bf16 autocast; default: train.precision")
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--max-minutes", type=float, default=math.inf, help="then save and stop; --resume goes on")
    parser.add_argument("--resume", action="store_true", help="from the state in the output folder")
    parser.add_argument("--stop-after", type=int, help="so many steps of the schedule, then save and stop")
    parser.add_argument("--test", help="sentence pairs to score at the end, every translation a reference")
    parser.add_argument("--evaluate", action="store_true", help="score --test with --weights, train nothing")
    parser.add_argument("--speed", type=int, nargs=3, metavar=("B", "T", "STEPS"),
                        help="time steps on random tokens; once, or once a line of standard input with --serve")
    parser.add_argument("--serve", action="store_true", help="with --speed: measure whenever a line comes in")
    return parser.parse_args()


def learning_rate(settings, step, steps):
    """Of step 0, 1, …: a linear rise over `warmup` steps, then the schedule."""
    peak, warmup = settings["learning_rate"], settings["warmup"]
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return peak * {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2,
                   "paper": math.sqrt(max(1, warmup) / (step + 1))}[settings["schedule"]]


class Twin:
    """Model, optimiser and what one step does; `shipped` is the model that is validated and saved: the running mean of
    the weights where train.ema asks for one."""

    def __init__(self, settings, options):
        torch.manual_seed(settings["train"]["seed"])
        self.settings, self.device = settings, options.device
        self.model = Seq2Seq(settings["model"])
        if options.weights:
            self.model.load_state_dict(load_file(options.weights))
        self.model.to(self.device)
        averaged = settings["train"]["ema"] > 0
        self.shipped = copy.deepcopy(self.model).requires_grad_(False) if averaged else self.model
        o = settings["optimizer"]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=o["learning_rate"], eps=o["epsilon"],
                                           betas=(o["beta1"], o["beta2"]), weight_decay=o["weight_decay"], fused=True)
        bf16 = options.bf16 or settings["train"]["precision"] == "bf16"
        self.precision = "bf16" if bf16 else "f32"
        self.cast = torch.autocast(self.device.split(":")[0], torch.bfloat16) if bf16 else contextlib.nullcontext()
        # Batches of random tokens have one shape, those of sentences a new one each.
        self.loss = torch.compile(self.plain_loss, dynamic=not options.speed) if options.compile else self.plain_loss

    def plain_loss(self, source, given, labels, padding):
        return smoothed_loss(self.model(source, given, padding), labels, self.settings["train"]["label_smoothing"])

    def step(self, batches, shares, rate):
        """One update from batches whose losses count by their shares. Returns the loss, still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total = 0
        for batch, share in zip(batches, shares):
            with self.cast:
                loss = self.loss(*batch) * share
            loss.backward()
            total = total + loss.detach()
        if self.settings["optimizer"]["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings["optimizer"]["clip"])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.shipped is not self.model:
            with torch.no_grad():
                torch._foreach_lerp_(list(self.shipped.parameters()), list(self.model.parameters()),
                                     1 - self.settings["train"]["ema"])
        return total

    @torch.no_grad()
    def validation_loss(self, pairs):
        """Cross-entropy in nats a target token, no smoothing, f32."""
        self.shipped.eval()
        total = 0.0
        for rows in pairs.epoch(0, 0, len(pairs), 4096):
            source, given, labels, padding = pairs.tensors(rows, self.device)
            mean = smoothed_loss(self.shipped(source, given, padding), labels, 0.0)
            total += mean.item() * int(pairs.target_tokens[rows].sum())
        self.model.train()
        return total / int(pairs.target_tokens.sum())


class Run:
    """A training run: steps, the log, validations, and the state to go on from."""

    def __init__(self, twin, pairs, valid, folder):
        self.twin, self.pairs, self.valid, self.folder = twin, pairs, valid, folder
        data, train = twin.settings["data"], twin.settings["train"]
        self.order = dict(seed=train["seed"], window=data["window"], budget=data["tokens_per_batch"])
        self.accumulate = train["accumulate"]
        epochs = (len(pairs.epoch(epoch=e, **self.order)) for e in range(train["epochs"]))
        self.steps = train["steps"] or sum(epochs) // self.accumulate
        self.step, self.best, self.unwritten = 0, math.inf, []

    def resume(self):
        state = torch.load(self.folder / "twin.pt", map_location=self.twin.device)
        self.twin.model.load_state_dict(state["model"])
        self.twin.shipped.load_state_dict(state["shipped"])
        self.twin.optimizer.load_state_dict(state["optimizer"])
        self.step, self.best = state["step"], state["best"]

    def save(self):
        twin = self.twin
        torch.save({"model": twin.model.state_dict(), "shipped": twin.shipped.state_dict(), "step": self.step,
                    "optimizer": twin.optimizer.state_dict(), "best": self.best}, self.folder / "twin.pt")

    def flush(self, log):
        """The losses since the last time: asking for each at once would make the GPU wait for us."""
        for step, loss in self.unwritten:
            log.write(json.dumps({"step": step, "train/loss": loss.item()}) + "\n")
        self.unwritten.clear()
        log.flush()

    def validate(self, log, seconds):
        """Keeps the weights with the lowest validation loss; without validation pairs the newest."""
        note = {"step": self.step, "seconds": round(seconds, 1)}
        if self.valid:
            note["valid/loss"] = self.twin.validation_loss(self.valid)
        if note.get("valid/loss", -math.inf) < self.best:
            self.best = note.get("valid/loss", math.inf)
            save_file(self.twin.shipped.state_dict(), self.folder / "model.safetensors")
        log.write(json.dumps(note) + "\n")
        print(json.dumps(note), flush=True)
        self.save()

    def to(self, stop, minutes):
        """Steps until `stop` or until time is over. Returns whether the schedule's end was reached."""
        settings, began, validated = self.twin.settings, time.monotonic(), self.step
        every = settings["train"]["validate_every"]
        stream = self.pairs.stream(**self.order, skip=self.step * self.accumulate)
        with open(self.folder / "metrics.jsonl", "a" if self.step else "w") as log:
            while self.step < stop and time.monotonic() - began < 60 * minutes:
                rows, ends = zip(*(next(stream) for _ in range(self.accumulate)))
                tokens = [int(self.pairs.target_tokens[r].sum()) for r in rows]
                loss = self.twin.step([self.pairs.tensors(r, self.twin.device) for r in rows],
                                      [t / sum(tokens) for t in tokens],
                                      learning_rate(settings["optimizer"], self.step, self.steps))
                self.step += 1
                self.unwritten.append((self.step, loss))
                if self.step % 100 == 0:
                    self.flush(log)
                if self.step % every == 0 if every else any(ends):
                    self.validate(log, time.monotonic() - began)
                    validated = self.step
            self.flush(log)
            if validated != self.step:
                self.validate(log, time.monotonic() - began)
        return self.step >= self.steps


def evaluate(model, tokenizer, options, data, folder):
    """Translates --test by greedy and beam search; scores it where sacreBLEU is installed (else later, by score.py)."""
    sentences, references = read_references(options.test, data["source_column"], data["target_column"])
    sources = [e.ids + [EOS] for e in tokenizer.encode_batch(sentences, add_special_tokens=False)]
    result = {"sentences": len(sentences)}
    for name, beam in (("greedy", 1), ("beam4", 4)):
        began = time.monotonic()
        ids = translate(model, sources, beam=beam, batch=256, max_length=data["max_length"])
        texts = [text.removeprefix(" ") for text in tokenizer.decode_batch(ids)]
        (folder / f"test.{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        result[name] = {"seconds": round(time.monotonic() - began, 1), **(scores(texts, references) or {})}
    result.update(versions(options.device))
    (folder / "twin.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


def main():
    options, start_mib = arguments(), peak_memory()
    if options.threads:
        torch.set_num_threads(options.threads)
    settings = read_settings(options.config, options.set)
    if options.speed:
        settings["model"]["vocabulary"] = settings["model"]["vocabulary"] or 8000
        return measure(Twin(settings, options), options, start_mib)
    path = options.tokenizer or settings["tokenizer"]["path"]
    if not path:
        raise SystemExit("twin: no tokenizer; expected --tokenizer or tokenizer.path (`multihead tokenizer train`)")
    tokenizer = Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True  # "</s>" in a sentence is text
    settings["model"]["vocabulary"] = settings["model"]["vocabulary"] or tokenizer.get_vocab_size()
    data, folder = settings["data"], pathlib.Path(options.output or settings["train"]["output"])
    folder.mkdir(parents=True, exist_ok=True)
    twin = Twin(settings, options)
    finished = options.evaluate
    if not options.evaluate:
        pairs, valid = (Pairs(tokenizer, *read_columns(data[part], data["source_column"], data["target_column"]),
                              data["max_length"]) if data[part] else None for part in ("train", "valid"))
        run = Run(twin, pairs, valid, folder)
        if options.resume:
            run.resume()
        stop = min(run.steps, options.stop_after or run.steps)
        print(f"twin: {len(pairs)} pairs ({pairs.left_out} left out), {pairs.target_tokens.sum()} target tokens; steps "
              f"{run.step} to {stop} of {run.steps} on {options.device} in {twin.precision}", flush=True)
        finished = run.to(stop, options.max_minutes)
        twin.shipped.load_state_dict(load_file(folder / "model.safetensors"))
    if finished and options.test:
        evaluate(twin.shipped.eval(), tokenizer, options, data, folder)


if __name__ == "__main__":
    main()
