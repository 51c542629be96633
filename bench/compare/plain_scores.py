"""BLEU and chrF with several references in plain Python, for machines without sacreBLEU: its defaults, to the digit.

usage: plain_scores.py TRANSLATIONS PAIRS.tsv (as score.py)
"""
import collections
import json
import math
import re
import sys


def tokens_13a(line):
    line = line.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for name, sign in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
        line = line.replace(name, sign)
    line = re.sub(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])", r" \1 ", f" {line} ")
    line = re.sub(r"([^0-9])([\.,])", r"\1 \2 ", line)
    line = re.sub(r"([\.,])([^0-9])", r" \1 \2", line)
    return re.sub(r"([0-9])(-)", r"\1 \2 ", line).split()


def ngrams(items, orders):
    """[order - 1] → Counter."""
    return [collections.Counter(tuple(items[i:i + n]) for i in range(len(items) - n + 1)) for n in range(1, orders + 1)]


class Bleu:
    """Of texts against the same references; the references are counted once."""

    def __init__(self, references):
        self.lengths, self.most = [], []
        for texts in references:
            split = [tokens_13a(text.rstrip()) for text in texts]
            self.lengths.append([len(tokens) for tokens in split])
            most = [collections.Counter() for _ in range(4)]
            for tokens in split:
                for kept, found in zip(most, ngrams(tokens, 4)):
                    kept |= found
            self.most.append(most)

    def __call__(self, texts):
        matches, totals, ours, theirs = [0] * 4, [0] * 4, 0, 0
        for text, lengths, most in zip(texts, self.lengths, self.most):
            tokens = tokens_13a(text.rstrip())
            ours += len(tokens)
            theirs += min(lengths, key=lambda n: (abs(n - len(tokens)), n))
            for n, found in enumerate(ngrams(tokens, 4)):
                matches[n] += sum((found & most[n]).values())
                totals[n] += sum(found.values())
        if not any(matches) or ours == 0:
            return 0.0
        logs, halved = 0.0, 1
        for match, total in zip(matches, totals):
            if total == 0:
                return 0.0
            if match == 0:
                halved *= 2
            logs += math.log(100 * match / total if match else 100 / (halved * total))
        return min(1.0, math.exp(1 - theirs / ours)) * math.exp(logs / 4)


def f_score(counts):
    """Of [(ours, theirs, both)] by order: beta 2, orders without n-grams on either side not counted."""
    precision = recall = orders = 0
    for ours, theirs, both in counts:
        if ours and theirs:
            precision, recall, orders = precision + both / ours, recall + both / theirs, orders + 1
    if not precision:
        return 0.0
    precision, recall = precision / orders, recall / orders
    return 100 * 5 * precision * recall / (4 * precision + recall)


def chrf(texts, references):
    """chrF2, 6 orders of characters, of each sentence the reference with the best F."""
    total = [(0, 0, 0)] * 6
    for text, several in zip(texts, references):
        ours = ngrams("".join(text.split()), 6)
        best = None
        for reference in several:
            theirs = ngrams("".join(reference.split()), 6)
            counts = [(sum(a.values()), sum(b.values()), sum((a & b).values())) for a, b in zip(ours, theirs)]
            if best is None or f_score(counts) > f_score(best):
                best = counts
        total = [tuple(x + y for x, y in zip(a, b)) for a, b in zip(total, best)]
    return f_score(total)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    references = {}
    with open(sys.argv[2], encoding="utf-8") as lines:
        for line in lines:
            source, target = line.rstrip("\r\n").split("\t")[:2]
            references.setdefault(source, []).append(target)
    with open(sys.argv[1], encoding="utf-8") as lines:
        texts = [line.rstrip("\n") for line in lines]
    several = list(references.values())
    print(json.dumps({"bleu": round(Bleu(several)(texts), 2), "chrf": round(chrf(texts, several), 2)}))


if __name__ == "__main__":
    main()
