#!/usr/bin/env python3
"""Makes the files recurrent_*.safetensors beside it: torch.nn.RNN, LSTM and GRU over packed sequences, and translation
models made of them.

usage: make_recurrent.py [FOLDER]

Computed in double precision from weights and inputs that are exact in f32, as make_golden.py does. In every file:
  weights            under the names PyTorch gives them
  input.x            (rows, C): the rows of all sequences, one sequence behind the other; input.lengths of each
  input.h, input.c   the states at the start (layers * directions, B, H)
  output, output_h, output_c   rows and last states; output_gradient.y, .h, .c the gradients of the loss by them
  gradient.*         the gradients of that loss, of weights and of inputs
Those of translation models, recurrent_seq2seq_*, have input.source, input.target and input.labels (padded by 0), logits of
all target tokens one sentence behind the other, the smoothed loss and the gradients of it.
"""
import pathlib
import sys
import zlib

import torch
from make_golden import BOS, EOS, HERE, draw, fresh_weights, save
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


def recurrent(folder, name, kind, lengths, *, layers=1, both=False, nonlinearity=None, width=9, inputs=7):
    torch.manual_seed(zlib.crc32(name.encode()))
    more = {"nonlinearity": nonlinearity} if nonlinearity else {}
    arguments = dict(input_size=inputs, hidden_size=width, num_layers=layers, bidirectional=both, **more)
    module = fresh_weights(getattr(nn, kind)(**arguments))
    x = draw(sum(lengths), inputs).requires_grad_()
    states = [draw(layers * (2 if both else 1), len(lengths), width).requires_grad_()
              for _ in range(2 if kind == "LSTM" else 1)]
    packed = pack_padded_sequence(pad_sequence(list(x.split(lengths))), lengths, enforce_sorted=False)
    packed_rows, ends = module(packed, tuple(states) if kind == "LSTM" else states[0])
    padded, _ = pad_packed_sequence(packed_rows)
    outputs = [torch.cat([padded[:length, b] for b, length in enumerate(lengths)]),
               *(ends if kind == "LSTM" else [ends])]
    gradients = [draw(*each.shape) for each in outputs]
    sum((y * dy).sum() for y, dy in zip(outputs, gradients)).backward()
    tensors = {**dict(module.named_parameters()), "input.x": x, "gradient.input.x": x.grad,
               "input.lengths": torch.tensor(lengths)}
    tensors.update({f"gradient.{key}": value.grad for key, value in module.named_parameters()})
    tensors.update({f"input.{key}": value for key, value in zip("hc", states)})
    tensors.update({f"gradient.input.{key}": value.grad for key, value in zip("hc", states)})
    tensors.update(zip(["output", "output_h", "output_c"], outputs))
    tensors.update(zip(["output_gradient.y", "output_gradient.h", "output_gradient.c"], gradients))
    save(folder, name, tensors, {"kind": kind, **arguments})


class Attention(nn.Module):
    def __init__(self, kind, hidden):
        super().__init__()
        self.kind = kind
        self.query = nn.Linear(hidden, hidden, bias=False)
        if kind == "additive":
            self.key = nn.Linear(hidden, hidden, bias=False)
            self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, h, memory):
        """What the rows h find in the rows of the memory."""
        if self.kind == "additive":
            scores = self.score(torch.tanh(self.query(h)[:, None] + self.key(memory)[None]))[..., 0]
        else:
            scores = self.query(h) @ memory.T
        return scores.softmax(-1) @ memory


class RecurrentSeq2Seq(nn.Module):
    """One sentence at a time, as the papers have it."""

    def __init__(self, kind, attention, vocabulary, width, hidden, layers):
        super().__init__()
        self.attends = attention != "none"
        self.kind, self.width = kind, width
        cell = getattr(nn, kind)
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = cell(width, hidden // 2 if self.attends else hidden, layers, bidirectional=self.attends)
        self.decoder = cell(width + (hidden if attention == "additive" else 0), hidden, layers)
        if self.attends:
            self.attention = Attention(attention, hidden)
        self.readout = nn.Linear((2 if self.attends else 1) * hidden, width)

    def start(self, ends):
        """Both directions of a layer side by side."""
        def joined(state):
            return torch.stack([torch.cat([state[n], state[n + 1]]) for n in range(0, len(state), 2)])
        if not self.attends:
            return ends
        return tuple(joined(each) for each in ends) if self.kind == "LSTM" else joined(ends)

    def forward(self, source, target):
        scale = self.width ** 0.5
        read = self.embedding(source) * scale
        memory, ends = self.encoder(read if self.attends else read.flip(0))
        state, x = self.start(ends), self.embedding(target) * scale
        if not self.attends:
            return self.readout(self.decoder(x, state)[0]) @ self.embedding.weight.T
        if self.attention.kind == "multiplicative":
            h = self.decoder(x, state)[0]
            context = self.attention(h, memory)
        else:
            rows = []
            for row in x:
                last = (state[0] if self.kind == "LSTM" else state)[-1:]
                context = self.attention(last, memory)
                h, state = self.decoder(torch.cat([row[None], context], 1), state)
                rows.append(torch.cat([h, context], 1))
            h, context = torch.cat(rows).split(self.decoder.hidden_size, 1)
        return torch.tanh(self.readout(torch.cat([h, context], 1))) @ self.embedding.weight.T


def seq2seq(folder, name, kind, attention, layers=2):
    torch.manual_seed(zlib.crc32(name.encode()))
    sizes = dict(vocabulary=23, width=8, hidden=10, layers=layers)
    model = fresh_weights(RecurrentSeq2Seq(kind, attention, **sizes))
    sources = [[5, 17, 22, 8, EOS], [9, 4, 13, 21, 10, EOS], [7, EOS]]
    targets = [[12, 20], [11, 15, 6, 3, 3], [19]]
    logits = torch.cat([model(torch.tensor(s), torch.tensor([BOS, *t])) for s, t in zip(sources, targets)])
    labels = torch.tensor([each for t in targets for each in (*t, EOS)])
    loss = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    loss.backward()

    def padded(rows):
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)

    tensors = {**dict(model.named_parameters()), "input.source": padded(sources), "logits": logits, "loss": loss,
               "input.target": padded([[BOS, *t] for t in targets]), "input.labels": padded([[*t, EOS] for t in targets])}
    tensors.update({f"gradient.{key}": value.grad for key, value in model.named_parameters()})
    save(folder, name, tensors, {"kind": kind, "attention": attention, "label_smoothing": 0.1, **sizes})


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    recurrent(folder, "recurrent_rnn_tanh", "RNN", [4, 1, 3], both=True, nonlinearity="tanh")
    recurrent(folder, "recurrent_rnn_relu", "RNN", [2, 5], nonlinearity="relu")
    recurrent(folder, "recurrent_lstm", "LSTM", [3, 6, 1])
    recurrent(folder, "recurrent_lstm_stacked", "LSTM", [5, 2, 4], layers=2, both=True)
    recurrent(folder, "recurrent_gru", "GRU", [1, 4, 6])
    recurrent(folder, "recurrent_gru_stacked", "GRU", [2, 5, 3], layers=2, both=True)
    seq2seq(folder, "recurrent_seq2seq_none", "LSTM", "none")
    seq2seq(folder, "recurrent_seq2seq_multiplicative", "LSTM", "multiplicative")
    seq2seq(folder, "recurrent_seq2seq_additive", "GRU", "additive")
    seq2seq(folder, "recurrent_seq2seq_rnn", "RNN", "additive", layers=1)


if __name__ == "__main__":
    main()
