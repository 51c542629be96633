"""Sentence pairs as token ids, and the order in which `multihead train` takes them."""
import itertools

import numpy as np
import torch

from philox import Random
from seq2seq import BOS, EOS, PAD


def read_columns(path, source_column, target_column):
    """The two columns (counted from 1) of a file of tab-separated lines, without pairs that have an empty side."""
    sources, targets = [], []
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            fields = line.rstrip("\r\n").split("\t")
            source, target = fields[source_column - 1], fields[target_column - 1]
            if source.strip() and target.strip():
                sources.append(source)
                targets.append(target)
    return sources, targets


def read_references(path, source_column=1, target_column=2):
    """Sentences in order of appearance, and for each the list of its translations: equal sources stand together."""
    references = {}
    for source, target in zip(*read_columns(path, source_column, target_column)):
        references.setdefault(source, []).append(target)
    return list(references), list(references.values())


class Ragged:
    """Lists of ids, one behind the other in one array."""

    def __init__(self, lists):
        self.lengths = np.array([len(ids) for ids in lists], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]) if lists else self.lengths
        self.flat = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in lists])

    def padded(self, rows):
        """(len(rows), longest), PAD behind each row's end."""
        lengths = self.lengths[rows]
        column = np.arange(lengths.max())[None]
        inside = column < lengths[:, None]
        return np.where(inside, self.flat[np.where(inside, self.starts[rows][:, None] + column, 0)], PAD)


class Pairs:
    """Encoded pairs: source = x … </s>; target = <s> y … </s>, of which all but the last go in, all but the first are
    labels. Pairs with more than max_length tokens on a side, </s> counted, are left out."""

    def __init__(self, tokenizer, sources, targets, max_length):
        encode = lambda texts: [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]  # noqa: E731
        pairs = [(s + [EOS], [BOS] + t + [EOS]) for s, t in zip(encode(sources), encode(targets))]
        kept = [(s, t) for s, t in pairs if len(s) <= max_length and len(t) - 1 <= max_length]
        self.left_out = len(pairs) - len(kept)
        self.source, self.target = Ragged([s for s, _ in kept]), Ragged([t for _, t in kept])
        self.source_tokens, self.target_tokens = self.source.lengths, self.target.lengths - 1

    def __len__(self):
        return len(self.target_tokens)

    def cut(self, order, budget):
        """Consecutive pairs of `order` while their target tokens, </s> counted, sum to `budget` at most."""
        batches, begin, total = [], 0, 0
        for i, tokens in enumerate(self.target_tokens[order].tolist()):
            if i > begin and total + tokens > budget:
                batches.append(order[begin:i])
                begin, total = i, 0
            total += tokens
        return batches + [order[begin:]]

    def epoch(self, seed, epoch, window, budget):
        """The batches (arrays of pair numbers) of one epoch: shuffle, sort each window by length, cut, shuffle."""
        random = Random(seed, epoch)
        order = np.array(random.shuffle(range(len(self))), dtype=np.int64)
        batches = []
        for begin in range(0, len(order), window):
            part = order[begin:begin + window]
            by_length = np.lexsort((self.source_tokens[part], self.target_tokens[part]))
            batches += self.cut(part[by_length], budget)
        return random.shuffle(batches)

    def tensors(self, rows, device):
        """source (B, Ts), target input (B, Tt), labels (B, Tt) and the source's padding (None where there is none)."""
        source, target = torch.from_numpy(self.source.padded(rows)), torch.from_numpy(self.target.padded(rows))
        given, labels = target[:, :-1].contiguous(), target[:, 1:].contiguous()
        lengths = self.source_tokens[rows]
        if device != "cpu":
            source, given, labels = (x.pin_memory().to(device, non_blocking=True) for x in (source, given, labels))
        return source, given, labels, source == PAD if lengths.min() != lengths.max() else None

    def stream(self, seed, window, budget, skip=0):
        """Yields (rows, whether its epoch ends with it), epoch after epoch without end, from batch number `skip` on."""
        for epoch in itertools.count():
            batches = self.epoch(seed, epoch, window, budget)
            for i in range(min(skip, len(batches)), len(batches)):
                yield batches[i], i + 1 == len(batches)
            skip = max(0, skip - len(batches))
