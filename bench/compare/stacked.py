"""Several runs of the encoder-decoder of seq2seq.py trained as one: weights have a leading axis R, one slice for each run.

Runs share the batches and the sizes; learning rate, warm-up, dropout, smoothing and decay are numbers of each run. Small
models leave a GPU idle between their kernels: nine of them in one stack take little longer than one.
"""
import math

import torch
from torch.nn import functional

from seq2seq import BOS, EOS, PAD, sinusoid


def layout(width, inner, layers, vocabulary):
    """name → shape of one run's weights, seq2seq.py's transposed for x · W (tied, pre-norm, ReLU): the embedding, matrices
    and biases, norms."""
    out = {"embedding": (vocabulary, width)}
    norm = lambda name: out.update({f"{name}.w": (width,), f"{name}.b": (width,)})  # noqa: E731

    def linear(name, inputs, outputs):
        out.update({f"{name}.w": (inputs, outputs), f"{name}.b": (outputs,)})

    for side in ("encoder", "decoder"):
        for layer in range(layers):
            at = f"{side}.{layer}"
            linear(f"{at}.qkv", width, 3 * width)
            linear(f"{at}.out", width, width)
            if side == "decoder":
                linear(f"{at}.query", width, width)
                linear(f"{at}.memory", width, 2 * width)
                linear(f"{at}.cross", width, width)
                norm(f"{at}.norm3")
            linear(f"{at}.up", width, inner)
            linear(f"{at}.down", inner, width)
            norm(f"{at}.norm1")
            norm(f"{at}.norm2")
        norm(f"{side}.norm")
    return dict(sorted(out.items(), key=lambda item: "norm" in item[0]))


class Stack:
    """The formula; `flat` (R, P) holds the weights, `keep` (R) what dropout leaves, None in evaluation."""

    def __init__(self, width, inner, layers, heads, vocabulary, longest, device):
        self.width, self.layers, self.heads, self.device = width, layers, heads, device
        self.shapes = layout(width, inner, layers, vocabulary)
        sizes = {name: math.prod(shape) for name, shape in self.shapes.items()}
        self.low = [n for name, n in sizes.items() if "norm" not in name]
        self.full = [n for name, n in sizes.items() if "norm" in name]
        self.positions = sinusoid(longest + 1, width).float().to(device)

    def fresh(self, runs):
        """As Seq2Seq.initialise, another draw for each run. q, k and v are drawn as one matrix there."""
        parts = []
        for name, shape in self.shapes.items():
            part = torch.empty(runs, *shape, device=self.device)
            if name == "embedding":
                part.normal_(std=1 / math.sqrt(self.width))
            elif len(shape) == 2:
                attends = name.split(".")[-2] in ("qkv", "query", "memory")
                part.uniform_(-1, 1).mul_(math.sqrt(6 / (4 * self.width if attends else sum(shape))))
            else:
                part.fill_(1.0 if name.endswith(".w") else 0.0)
            parts.append(part.flatten(1))
        return torch.cat(parts, 1)

    def open(self, flat, dtype):
        """Views of `flat` by name; matrices and biases in `dtype`, norms and the embedding as input in f32."""
        cut = sum(self.low)
        parts = flat[:, :cut].to(dtype).split(self.low, 1) + flat[:, cut:].split(self.full, 1)
        self.w = {name: part.view(-1, *shape) for (name, shape), part in zip(self.shapes.items(), parts)}
        self.table = flat[:, :self.low[0]].reshape(-1, self.width)
        self.dtype = dtype

    def linear(self, name, x):
        """(R, N, in) to (R, N, out)."""
        return torch.baddbmm(self.w[f"{name}.b"][:, None], x, self.w[f"{name}.w"])

    def norm(self, name, x):
        y = functional.layer_norm(x, (self.width,))
        return torch.addcmul(self.w[f"{name}.b"][:, None], y, self.w[f"{name}.w"][:, None]).to(self.dtype)

    def drop(self, x, keep):
        if keep is None:
            return x
        keep = keep.view((-1,) + (1,) * (x.dim() - 1))
        return x * (torch.rand(x.shape, device=x.device).lt_(keep) / keep).to(x.dtype)

    def split(self, x, rows):
        """(R, B·T, C) to (R, B, H, T, D)."""
        return x.view(x.shape[0], rows, -1, self.heads, self.width // self.heads).transpose(2, 3)

    def attend(self, q, k, v, bias, keep):
        """To (R, B·Tq, C); bias is 0 or -inf and broadcasts to (R, B, H, Tq, Tk)."""
        scores = (q @ k.transpose(-1, -2)).float() / math.sqrt(q.shape[-1])
        p = (scores if bias is None else scores + bias).softmax(-1).to(v.dtype)
        return (self.drop(p, keep) @ v).transpose(2, 3).reshape(q.shape[0], -1, self.width)

    def embed(self, ids, keep, first=0):
        """ids (B, T) or (R, B, T) to (R, B·T, C) in f32."""
        runs, vocabulary = self.w["embedding"].shape[:2]
        first_row = torch.arange(runs, device=self.device)[:, None] * vocabulary
        rows = functional.embedding(first_row + ids.flatten(-2), self.table)
        places = self.positions[first:first + ids.shape[-1]].repeat(ids.shape[-2], 1)
        return self.drop(rows * math.sqrt(self.width) + places, keep)

    def feed(self, at, x, norm, keep):
        inner = self.drop(functional.relu(self.linear(f"{at}.up", self.norm(f"{at}.{norm}", x))), keep)
        return x + self.drop(self.linear(f"{at}.down", inner), keep)

    def encode(self, source, keep=None):
        """source (B, Ts) to the memory (R, B·Ts, C) and the bias of its padding."""
        bias = torch.zeros(source.shape, device=self.device).masked_fill_(source == PAD, -torch.inf)[:, None, None]
        x, rows = self.embed(source, keep), len(source)
        for layer in range(self.layers):
            at = f"encoder.{layer}"
            q, k, v = (self.split(y, rows) for y in self.linear(f"{at}.qkv", self.norm(f"{at}.norm1", x)).chunk(3, -1))
            x = x + self.drop(self.linear(f"{at}.out", self.attend(q, k, v, bias, keep)), keep)
            x = self.feed(at, x, "norm2", keep)
        return self.norm("encoder.norm", x), bias

    def decode(self, target, memory, bias, keep=None):
        """target (B, Tt) to logits (R, B·Tt, V)."""
        rows, length = target.shape
        causal = torch.full((length, length), -torch.inf, device=self.device).triu_(1)
        x = self.embed(target, keep)
        for layer in range(self.layers):
            at = f"decoder.{layer}"
            q, k, v = (self.split(y, rows) for y in self.linear(f"{at}.qkv", self.norm(f"{at}.norm1", x)).chunk(3, -1))
            x = x + self.drop(self.linear(f"{at}.out", self.attend(q, k, v, causal, keep)), keep)
            q = self.split(self.linear(f"{at}.query", self.norm(f"{at}.norm2", x)), rows)
            k, v = (self.split(y, rows) for y in self.linear(f"{at}.memory", memory).chunk(2, -1))
            x = x + self.drop(self.linear(f"{at}.cross", self.attend(q, k, v, bias, keep)), keep)
            x = self.feed(at, x, "norm3", keep)
        return self.norm("decoder.norm", x) @ self.w["embedding"].transpose(1, 2)

    def losses(self, source, given, labels, keep=None):
        """The mean over the batch's labels, of each run (R): -log p[label], and -mean(log p)."""
        logits = self.decode(given, *self.encode(source, keep), keep).float()
        normaliser, counts = logits.logsumexp(-1), (labels != PAD).flatten()
        index = labels.flatten().expand(len(logits), -1)[..., None]
        nll = normaliser - logits.gather(-1, index)[..., 0]
        spread = normaliser - logits.mean(-1)
        return [(loss * counts).sum(1) / counts.sum() for loss in (nll, spread)]

    @torch.inference_mode()
    def greedy(self, flat, source, longest):
        """Token ids (R, B, T) in f32; what follows EOS or the limit 2 · source + 10 is PAD."""
        self.open(flat, torch.float32)
        runs, rows = len(flat), len(source)
        limits = ((source != PAD).sum(1) * 2 + 10).clamp(max=longest)
        memory, bias = self.encode(source)
        held = [[self.split(y, rows) for y in self.linear(f"decoder.{n}.memory", memory).chunk(2, -1)]
                for n in range(self.layers)]
        cache = [[[], []] for _ in range(self.layers)]
        ids = torch.full((runs, rows), BOS, device=self.device)
        done, taken = torch.zeros_like(ids, dtype=torch.bool), []
        for position in range(int(limits.max())):
            x = self.embed(ids[..., None], None, position)
            for layer in range(self.layers):
                at, before = f"decoder.{layer}", cache[layer]
                qkv = self.linear(f"{at}.qkv", self.norm(f"{at}.norm1", x)).chunk(3, -1)
                q, k, v = (self.split(y, rows) for y in qkv)
                before[0].append(k)
                before[1].append(v)
                x = x + self.linear(f"{at}.out", self.attend(q, *(torch.cat(c, 3) for c in before), None, None))
                q = self.split(self.linear(f"{at}.query", self.norm(f"{at}.norm2", x)), rows)
                x = x + self.linear(f"{at}.cross", self.attend(q, *held[layer], bias, None))
                x = self.feed(at, x, "norm3", None)
            logits = self.norm("decoder.norm", x) @ self.w["embedding"].transpose(1, 2)
            ids = logits.argmax(-1).masked_fill(done, PAD)
            taken.append(ids)
            done = done | (ids == EOS) | (limits == position + 1)
            if position % 8 == 7 and done.all():
                break
        return torch.stack(taken, 2)
