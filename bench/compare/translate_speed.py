#!/usr/bin/env python3
"""Translation by our program, CTranslate2 and PyTorch with the same weights: equal outputs, and sentences a second."""
import argparse
import copy
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
from tokenizers import Tokenizer, pre_tokenizers

from batches import read_references
from ctranslate import convert
from decode import limit_of
from machine import versions
from report import ratio_table, table, write
from seq2seq import BOS, EOS
from settings import read_settings
from translators import MAX_LENGTH, CTranslate2, Ours, PyTorch

HERE = pathlib.Path(__file__).resolve().parent
MODES = {"greedy, batched": (1, False), "beam 4, batched": (4, False), "greedy, one at a time": (1, True),
         "beam 4, one at a time": (4, True)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("multihead", help="the program")
    parser.add_argument("model", type=pathlib.Path, help="model folder: model.safetensors, tokenizer.json, config.toml")
    parser.add_argument("pairs", help="tab-separated file whose first column is translated")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5, help="turns each program takes")
    parser.add_argument("--torch", type=int, default=5, help="PyTorch, which is slow, translates each n-th sentence")
    parser.add_argument("--alone", type=int, default=100, help="how many sentences are translated one at a time")
    parser.add_argument("--output", default=str(HERE.parent / "results" / "compare"), help="folder of the record")
    parser.add_argument("--check", action="store_true", help="fail where a bar is missed")
    return parser.parse_args()


def gap(model, tokenizer, text, source, ids):
    """How far apart, in f64, the two best logits lie at the first token where `ids` leave the way to `text`."""
    spelled = lambda t: "".join(x for x, _ in pre_tokenizers.ByteLevel(False, use_regex=False)  # noqa: E731
                                .pre_tokenize_str(t))
    wanted, given, position = spelled(" " + text), "", 0
    for position, i in enumerate(ids + [EOS]):
        given += tokenizer.id_to_token(i) if i != EOS else ""
        if i == EOS or not wanted.startswith(given):
            break
    with torch.inference_mode():
        logits = model(torch.tensor([source]), torch.tensor([[BOS] + ids[:position]]))[0, -1]
    best = logits.topk(2).values
    return float(best[0] - best[1])


def compare(ours, peer, torch_peer, texts, tokenizer):
    """Greedy outputs of ours and CTranslate2, sentence by sentence; those that differ, with their gap."""
    mine, _ = ours.run(texts, 1, ours.settings(False)[0])
    theirs, _ = peer.run(texts, 1, peer.settings(False)[0])
    exact = copy.deepcopy(torch_peer.model).double()
    exact.positions = exact.positions.double()
    differing = []
    for text, translation, ids in zip(texts, mine, theirs, strict=True):
        source = tokenizer.encode(text, add_special_tokens=False).ids + [EOS]
        ids = ids[:limit_of(len(source), MAX_LENGTH)]  # CTranslate2 has one limit for all sentences
        if tokenizer.decode(ids).removeprefix(" ") != translation:
            differing.append({"source": text, "multihead": translation, "ctranslate2": tokenizer.decode(ids),
                              "gap": gap(exact, tokenizer, translation, source, ids)})
    return differing


def measure(peers, texts, alone, rounds):
    """{mode: {program: sentences/s …}}: each program's best setting by one pass after a first, then turns."""
    rows = {}
    for mode, (beam, single) in MODES.items():
        part = {peer.name: (texts[:alone] if single else texts)[::peer.stride] for peer in peers}
        turn = lambda peer, setting: peer.run(part[peer.name], beam, setting)[1]  # noqa: E731
        best = {}
        for peer in peers:
            settings = peer.settings(single)
            turn(peer, settings[0])
            tried = [turn(peer, s) for s in settings] if len(settings) > 1 else [0]
            best[peer.name] = settings[tried.index(min(tried))]
        seconds = {peer.name: [] for peer in peers}
        for _ in range(rounds):
            for peer in peers:
                time.sleep(0.2)  # threads of the last one that still spin come to rest
                seconds[peer.name].append(turn(peer, best[peer.name]))
        rows[mode] = {name: {"sentences_per_second": round(len(part[name]) / statistics.median(s), 2),
                             "slowest": round(len(part[name]) / max(s), 2), "fastest": round(len(part[name]) / min(s), 2),
                             "setting": best[name]} for name, s in seconds.items()}
    return rows


def ratios(rows, equal, ties):
    """(what, ratio, bar, whether it holds)."""
    judged = [("greedy outputs equal to CTranslate2's", equal, 0.99, equal >= 0.99 and ties)]
    for mode, found in rows.items():
        speed = {name: row["sentences_per_second"] for name, row in found.items()}
        for peer, bar in ((CTranslate2.name, 1.0 if "one at" in mode else 1.5), (PyTorch.name, 5.0)):
            ratio = speed[Ours.name] / speed[peer]
            bar = None if peer == PyTorch.name and "one at" in mode else bar
            judged.append((f"{mode}: multihead / {peer}", ratio, bar, bar is None or ratio >= bar))
    return judged


def main():
    options = arguments()
    texts, _ = read_references(options.pairs)
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    settings = read_settings(options.model / "config.toml")
    with tempfile.TemporaryDirectory() as folder:
        convert(options.model, folder)
        peers = [Ours(options.multihead, options.model, options.threads),
                 CTranslate2(folder, tokenizer, options.threads),
                 PyTorch(options.model, settings, tokenizer, options.threads, options.torch)]
        differing = compare(*peers, texts, tokenizer)
        rows = measure(peers, texts, options.alone, options.rounds)
    equal, ties = 1 - len(differing) / len(texts), all(d["gap"] < 1e-4 for d in differing)
    judged = ratios(rows, equal, ties)
    facts = {**versions(), "threads": options.threads, "sentences": len(texts), "alone": options.alone,
             "torch_every": options.torch, "rounds": options.rounds}
    lines = [f"{facts['processor']}, {options.threads} threads, {len(texts)} sentences ({options.alone} one at a time), "
             f"CTranslate2 {facts['ctranslate2']}, PyTorch {facts['torch']}; sentences/s, medians of {options.rounds} "
             f"turns, each program at its best setting. PyTorch translates one sentence of {options.torch}.", ""]
    lines += table(["", *(peer.name for peer in peers)],
                   [[mode, *(f"{row['sentences_per_second']:,.1f}" for row in found.values())]
                    for mode, found in rows.items()])
    lines += ["", f"Greedy outputs that differ from CTranslate2's: {len(differing)} of {len(texts)}"
              + (f", the two best logits {max(d['gap'] for d in differing):.1e} apart at most." if differing else "."), ""]
    write(options.output, "translate", lines + ratio_table(judged),
          {"facts": facts, "rows": rows, "differing": differing}, judged)
    if options.check and not all(holds for *_, holds in judged):
        sys.exit("translate_speed: a bar is missed")


if __name__ == "__main__":
    main()
