#!/usr/bin/env python3
"""A tokenizer that reads numbers digit by digit, from one that does not. usage: split_digits.py TOKENIZER.json OUT.json

Takes out the merges that join digits. Tokens keep their ids, so that weights still fit; those of several digits are never
used again. A number is then copied as the sequence it is, instead of by whichever of its parts were frequent.
"""
import json
import sys


def main(source, target):
    with open(source, encoding="utf-8") as file:
        tokenizer = json.load(file)
    merges = tokenizer["model"]["merges"]
    tokenizer["model"]["merges"] = [m for m in merges if sum(c.isdigit() for c in "".join(m)) < 2]
    with open(target, "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, indent=2, ensure_ascii=False)
    return len(merges) - len(tokenizer["model"]["merges"])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(f"split_digits: {main(*sys.argv[1:])} merges taken out")
