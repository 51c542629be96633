#!/usr/bin/env python3
"""The twin of `multihead train` in PyTorch: the same model, data order and schedule, for speed and quality side by side."""
import argparse
import contextlib
import json
import math
import pathlib
import time

import sacrebleu
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from batches import Pairs, read_columns, read_references
from decode import translate
from machine import versions
from seq2seq import EOS, Seq2Seq, smoothed_loss
from settings import read_settings
from speed import measure


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", help="the TOML file of `multihead train`")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="over the file")
    parser.add_argument("--tokenizer", help="tokenizer.json; default: tokenizer.path, else one is trained")
    parser.add_argument("--weights", help="initial weights (safetensors); default: drawn from train.seed")
    parser.add_argument("--output", help="folder for weights, tokenizer and metrics; default: train.output")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--bf16", action="store_true", help="bf16 autocast; default: train.precision")
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--max-minutes", type=float, default=math.inf, help="then save and stop; --resume goes on")
    parser.add_argument("--resume", action="store_true", help="from the state in the output folder")
    parser.add_argument("--stop-after", type=int, help="so many steps of the schedule, then save and stop")
    parser.add_argument("--test", help="sentence pairs to score at the end, every translation a reference")
    parser.add_argument("--evaluate", action="store_true", help="score --test with the weights given, train nothing")
    parser.add_argument("--speed", type=int, nargs=3, metavar=("B", "T", "STEPS"),
                        help="time steps on random tokens; once, or once a line of standard input with --serve")
    parser.add_argument("--serve", action="store_true", help="with --speed: measure whenever a line comes in")
    return parser.parse_args()


def train_tokenizer(settings, texts):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=settings["vocabulary"], special_tokens=["<pad>", "<s>", "</s>", "<unk>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def learning_rate(settings, step, steps):
    """Of step 0, 1, …: a linear rise over `warmup` steps, then the schedule."""
    peak, warmup, schedule = settings["learning_rate"], settings["warmup"], settings["schedule"]
    if schedule == "paper":
        return peak * min((step + 1) ** -0.5, (step + 1) * warmup ** -1.5) * warmup ** 0.5
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return peak * {"cosine": 0.5 + 0.5 * math.cos(math.pi * done), "linear": 1 - done, "constant": 1.0}[schedule]


class Twin:
    """Model, optimiser and what one step does."""

    def __init__(self, settings, options, weights=None):
        torch.manual_seed(settings["train"]["seed"])
        self.settings, self.device = settings, options.device
        self.model = Seq2Seq(settings["model"])
        if weights:
            self.model.load_state_dict(load_file(weights))
        self.model.to(self.device)
        o = settings["optimizer"]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=o["learning_rate"], eps=o["epsilon"],
                                           betas=(o["beta1"], o["beta2"]), weight_decay=o["weight_decay"], fused=True)
        bf16 = options.bf16 or settings["train"]["precision"] == "bf16"
        self.precision = "bf16" if bf16 else "f32"
        self.cast = torch.autocast(self.device.split(":")[0], torch.bfloat16) if bf16 else contextlib.nullcontext()
        self.forward = torch.compile(self.loss, dynamic=options.speed is None) if options.compile else self.loss

    def loss(self, source, given, labels, padding, smoothing):
        return smoothed_loss(self.model(source, given, padding), labels, smoothing)

    def step(self, batch, rate):
        """Returns the loss, still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with self.cast:
            loss = self.forward(*batch, self.settings["train"]["label_smoothing"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings["optimizer"]["clip"])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    @torch.no_grad()
    def validation_loss(self, pairs):
        """Cross-entropy in nats a target token, no smoothing."""
        self.model.eval()
        total = 0.0
        for rows in pairs.epoch(0, 0, len(pairs), 4096):
            with self.cast:
                total += self.loss(*pairs.tensors(rows, self.device), 0.0).item() * pairs.target_tokens[rows].sum()
        self.model.train()
        return float(total / pairs.target_tokens.sum())


def train(twin, pairs, valid, options, folder):
    """Returns whether the last step of the schedule was reached."""
    settings, began = twin.settings, time.monotonic()
    data, seed = settings["data"], settings["train"]["seed"]
    epoch_of = lambda e: pairs.epoch(seed, e, data["window"], data["tokens_per_batch"])  # noqa: E731
    steps = settings["train"]["steps"] or sum(len(epoch_of(e)) for e in range(settings["train"]["epochs"]))
    step, losses = 0, []
    if options.resume:
        state = torch.load(folder / "twin.pt", map_location=twin.device)
        twin.model.load_state_dict(state["model"])
        twin.optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    stop = min(steps, options.stop_after or steps)
    print(f"twin: steps {step} to {stop} of {steps} on {twin.device} in {twin.precision}", flush=True)
    metrics = open(folder / "metrics.jsonl", "a" if options.resume else "w")

    def flush():
        for number, value in losses:
            metrics.write(json.dumps({"step": number, "loss": value.item()}) + "\n")
        metrics.flush()
        losses.clear()

    passed, epoch, out_of_time = 0, 0, False
    while step < stop and not out_of_time:
        batches = epoch_of(epoch)
        left = batches[max(0, step - passed):]
        passed, epoch = passed + len(batches), epoch + 1
        if not left:
            continue
        for rows in left:
            batch = pairs.tensors(rows, twin.device)
            losses.append((step + 1, twin.step(batch, learning_rate(settings["optimizer"], step, steps))))
            step += 1
            if step % 100 == 0:
                flush()
                out_of_time = time.monotonic() - began > 60 * options.max_minutes
            if step >= stop or out_of_time:
                break
        flush()
        note = {"step": step, "seconds": round(time.monotonic() - began, 1)}
        if valid:
            note["validation_loss"] = twin.validation_loss(valid)
        print(json.dumps(note), flush=True)
        metrics.write(json.dumps(note) + "\n")
        torch.save({"model": twin.model.state_dict(), "optimizer": twin.optimizer.state_dict(), "step": step},
                   folder / "twin.pt")
    save_file(twin.model.state_dict(), folder / "model.safetensors")
    return step >= steps


def evaluate(twin, tokenizer, options, folder):
    """BLEU and chrF of greedy and beam search against every reference, as sacreBLEU scores them."""
    data, twin.model = twin.settings["data"], twin.model.eval()
    sentences, references = read_references(options.test, data["source_column"], data["target_column"])
    streams = [[r[i] if i < len(r) else None for r in references] for i in range(max(map(len, references)))]
    sources = [e.ids + [EOS] for e in tokenizer.encode_batch(sentences, add_special_tokens=False)]
    result = {"sentences": len(sentences)}
    for name, beam in (("greedy", 1), ("beam 4", 4)):
        began = time.monotonic()
        ids = translate(twin.model, sources, beam=beam, batch=256, max_length=data["max_length"])
        texts = [text.removeprefix(" ") for text in tokenizer.decode_batch(ids)]
        bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
        result[name] = {"bleu": round(bleu.corpus_score(texts, streams).score, 2),
                        "chrf": round(chrf.corpus_score(texts, streams).score, 2),
                        "seconds": round(time.monotonic() - began, 1), "signature": str(bleu.get_signature())}
        (folder / f"test.{name.replace(' ', '')}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return result


def main():
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    settings = read_settings(options.config, options.set)
    if options.speed:
        return measure(Twin(settings, options, options.weights), options)
    folder = pathlib.Path(options.output or settings["train"]["output"])
    folder.mkdir(parents=True, exist_ok=True)
    data = settings["data"]
    path = options.tokenizer or settings["tokenizer"]["path"]
    columns = [read_columns(data[part], data["source_column"], data["target_column"]) if data[part] else None
               for part in ("train", "valid")]
    tokenizer = Tokenizer.from_file(path) if path else train_tokenizer(settings["tokenizer"], sum(columns[0], []))
    tokenizer.encode_special_tokens = True  # "</s>" in a sentence is text
    tokenizer.save(str(folder / "tokenizer.json"))
    twin = Twin(settings, options, options.weights)
    finished = options.evaluate
    if not options.evaluate:
        pairs, valid = (Pairs(tokenizer, *c, data["max_length"]) if c else None for c in columns)
        print(f"twin: {len(pairs)} pairs, {pairs.left_out} left out, {pairs.target_tokens.sum()} target tokens")
        finished = train(twin, pairs, valid, options, folder)
    if finished and options.test:
        result = {**evaluate(twin, tokenizer, options, folder), **versions(options.device)}
        (folder / "twin.json").write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(result))


if __name__ == "__main__":
    main()
