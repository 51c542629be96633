#!/usr/bin/env python3
"""BLEU and chrF of translations by sacreBLEU, against every reference. usage: score.py TRANSLATIONS PAIRS.tsv

TRANSLATIONS has one line for every different sentence of the first column of PAIRS.tsv, in order of appearance.
"""
import json
import sys

from batches import read_references


def scores(texts, references):
    """references: for each text the list of its references. None where sacreBLEU is not installed."""
    try:
        import sacrebleu
    except ImportError:
        return None
    if len(texts) != len(references):
        raise SystemExit(f"score: {len(texts)} translations of {len(references)} sentences")
    streams = [[r[i] if i < len(r) else None for r in references] for i in range(max(map(len, references)))]
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    found = {"bleu": round(bleu.corpus_score(texts, streams).score, 2),
             "chrf": round(chrf.corpus_score(texts, streams).score, 2)}
    return {**found, "bleu_signature": str(bleu.get_signature()), "chrf_signature": str(chrf.get_signature())}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as lines:
        print(json.dumps(scores([line.rstrip("\n") for line in lines], read_references(sys.argv[2])[1])))
