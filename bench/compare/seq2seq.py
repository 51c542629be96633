"""The encoder-decoder of `multihead train` in PyTorch: the same formula and the same names of weights."""
import math

import torch
from torch import nn

PAD, BOS, EOS, UNK = 0, 1, 2, 3


def sinusoid(length, width):
    """Column 2i: sin(position / 10000^(2i/width)); column 2i + 1: cos of the same."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position * 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    table = torch.empty(length, width, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : width // 2]
    return table


class Seq2Seq(nn.Module):
    """logits = decoder(target, encoder(source)) · E^T, with embeddings scaled by √width and sinusoidal positions.

    `config` is the [model] table of a training config. Tied: source, target and output share embedding.weight.
    """

    def __init__(self, config):
        super().__init__()
        width, vocabulary = config["width"], config["vocabulary"]
        block = dict(d_model=width, nhead=config["heads"], dim_feedforward=config["feed_forward"],
                     dropout=config["dropout"], activation=config["activation"], batch_first=True,
                     norm_first=config["norm"] == "pre")
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(vocabulary, width)
        if not config["tied"]:
            self.target_embedding = nn.Embedding(vocabulary, width)
            self.output = nn.Linear(width, vocabulary, bias=False)
        self.tied = config["tied"]
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**block), config["encoder_layers"],
                                             nn.LayerNorm(width), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**block), config["decoder_layers"],
                                             nn.LayerNorm(width))
        self.dropout = nn.Dropout(config["dropout"])
        self.register_buffer("positions", sinusoid(config["max_length"] + 1, width).float(), persistent=False)
        self.initialise()

    def initialise(self):
        for name, parameter in self.named_parameters():
            if "embedding" in name or name == "output.weight":
                nn.init.normal_(parameter, std=1 / self.scale)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def embed(self, table, ids, first=0):
        return self.dropout(table(ids) * self.scale + self.positions[first:first + ids.shape[1]].to(table.weight.dtype))

    def encode(self, source, source_padding=None):
        return self.encoder(self.embed(self.embedding, source), src_key_padding_mask=source_padding)

    def decode(self, target, memory, source_padding=None):
        """Padding of the target needs no mask: it stands behind every token that counts."""
        table = self.embedding if self.tied else self.target_embedding
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device, dtype=torch.bool)
        return self.decoder(self.embed(table, target), memory, tgt_mask=causal, tgt_is_causal=True,
                            memory_key_padding_mask=source_padding)

    def logits(self, hidden):
        return hidden @ (self.embedding if self.tied else self.output).weight.T

    def forward(self, source, target, source_padding=None):
        """Token ids (B, Ts), (B, Tt) and a mask (B, Ts), true on padding, to logits (B, Tt, V)."""
        return self.logits(self.decode(target, self.encode(source, source_padding), source_padding))


def smoothed_loss(logits, labels, smoothing):
    """The mean over labels that are not padding of -(1 - s)·log p[label] - s·mean(log p)."""
    rows = logits.flatten(0, 1)
    if rows.dtype == torch.bfloat16:
        rows = rows.float()
    return nn.functional.cross_entropy(rows, labels.flatten(), ignore_index=PAD, label_smoothing=smoothing)
