#!/usr/bin/env python3
"""Makes what grid.py reads: subsets of the training pairs, a tokenizer of each vocabulary learned from each subset, ids.

usage: grid_data.py build/release/bin/multihead OUT

Needs nothing but Python and our program, after scripts/data. A subset is the first N of the shuffled training pairs; for
SIZE pairs and V tokens OUT gets SIZE.V.json: {"tokens": hex of each token's bytes, "train": [[source, target], …],
"valid": …, "test": …} in ids without special tokens, compressed; and references.json, the texts of valid and test.
"""
import gzip
import json
import pathlib
import random
import subprocess
import sys

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/tatoeba"
SIZES = {1000: (500, 1000, 2000), 5000: (1000, 2000, 4000), 29000: (1000, 2000, 4000, 8000), 100000: (4000, 8000)}


def read_pairs(part):
    with open(DATA / f"{part}.en-de.tsv", encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n").split("\t")[:2] for line in lines]


def byte_alphabet():
    """character → byte of byte-level BPE: printable bytes stand for themselves, the others for U+0100 and on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}


def encode(program, tokenizer, pairs):
    """[[source ids, target ids], …]"""
    text = "".join(f"{source}\n{target}\n" for source, target in pairs)
    out = subprocess.run([program, "tokenizer", "encode", tokenizer], input=text.encode(), capture_output=True, check=True)
    lines = [[int(i) for i in line.split()] for line in out.stdout.decode().splitlines()]
    return [list(pair) for pair in zip(lines[0::2], lines[1::2])]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    train, valid, test = (read_pairs(part) for part in ("train", "valid", "test"))
    random.Random(1).shuffle(train)
    with open(folder / "references.json", "w", encoding="utf-8") as out:
        json.dump({"valid": valid, "test": test}, out, ensure_ascii=False)
    alphabet = byte_alphabet()
    for size, vocabularies in SIZES.items():
        text = folder / f"{size}.tsv"
        text.write_text("".join(f"{s}\t{t}\n" for s, t in train[:size]), encoding="utf-8")
        for vocabulary in vocabularies:
            path = folder / f"{size}.{vocabulary}.tokenizer.json"
            subprocess.run([program, "tokenizer", "train", text, "--vocabulary", str(vocabulary), "--out", path],
                           check=True, stderr=subprocess.DEVNULL)
            names = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
            tokens = ["".join(f"{alphabet[c]:02x}" for c in name) if i > 3 else ""
                      for name, i in sorted(names.items(), key=lambda item: item[1])]
            assert names["<pad>"] == 0 and names["</s>"] == 2 and len(tokens) <= vocabulary, path
            ids = {"train": train[:size], "valid": valid, "test": test}
            ids = {part: encode(program, path, pairs) for part, pairs in ids.items()}
            with gzip.open(folder / f"{size}.{vocabulary}.json.gz", "wt", compresslevel=6) as out:
                json.dump({"tokens": tokens, **ids}, out, separators=(",", ":"))
            print(f"{size} pairs, {len(tokens)} tokens: {sum(len(t) + 1 for _, t in ids['train'])} target tokens")


if __name__ == "__main__":
    main()
