#!/usr/bin/env python3
"""Makes the files beside it: weights, inputs, outputs and gradients of PyTorch's attention and Transformer layers.

usage: make_golden.py [FOLDER]

Everything is computed in double precision from weights and inputs that are exact in f32, so that what is saved (f32) is
off by its own rounding alone. In every file:
  weights          under the names PyTorch gives them
  input.*          what the layer was given: (B, T, C), token ids and lengths as i64; keys at or past a length are padding
  output           what it returned; the seq2seq file has `logits` and `loss`
  output_gradient  the gradient of the loss with respect to `output`; the loss is sum(output * output_gradient)
  gradient.*       the gradients of that loss, of weights and of inputs
and in its metadata the arguments the layer was made with.
"""
import json
import pathlib
import struct
import sys
import warnings
import zlib

import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "bench" / "compare"))
from seq2seq import BOS, EOS, PAD, Seq2Seq, smoothed_loss  # noqa: E402


def draw(*shape, scale=1.0):
    """Normal numbers of f32, as doubles."""
    return (torch.randn(*shape) * scale).double()


def fresh_weights(module):
    """Replaces what initialisation left at 0 or 1 (biases, norms): a layer that forgot one must fail."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            wide = parameter.dim() > 1
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.copy_((centre + draw(*parameter.shape, scale=parameter.shape[-1] ** -0.5 if wide else 0.2)).float())
    return module.double()


def padding(lengths, size):
    """(B, size), true at and behind each length; None stays None."""
    return None if lengths is None else torch.arange(size)[None] >= torch.tensor(lengths)[:, None]


def causal_mask(size):
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def save(folder, name, tensors, arguments):
    """A safetensors file whose bytes are the same every time: the safetensors package keeps metadata in no order."""
    header, parts, end = {"__metadata__": {key: str(value) for key, value in sorted(arguments.items())}}, [], 0
    # i64 first: whatever follows 8-byte elements lies aligned.
    for key, value in sorted(tensors.items(), key=lambda item: (item[1].dtype != torch.int64, item[0])):
        value = value.detach()
        array = (value if value.dtype == torch.int64 else value.float()).numpy()
        begin, end = end, end + array.nbytes
        header[key] = {"dtype": "I64" if value.dtype == torch.int64 else "F32", "shape": list(array.shape),
                       "data_offsets": [begin, end]}
        parts.append(array.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def record(folder, name, module, inputs, call, arguments, lengths=()):
    """Runs `call(inputs)`, takes the gradients of sum(output * output_gradient) and saves them all."""
    for value in inputs.values():
        value.requires_grad_()
    output = call(inputs)
    output_gradient = draw(*output.shape)
    (output * output_gradient).sum().backward()
    tensors = {**dict(module.named_parameters()), "output": output, "output_gradient": output_gradient}
    tensors.update({f"input.{key}": value for key, value in inputs.items()})
    tensors.update({f"input.{key}": torch.tensor(value) for key, value in lengths if value is not None})
    tensors.update({f"gradient.{key}": value.grad for key, value in module.named_parameters()})
    tensors.update({f"gradient.input.{key}": value.grad for key, value in inputs.items()})
    save(folder, name, tensors, arguments)


def attention(folder, name, width, heads, *, bias=True, key_width=None, value_width=None, cross=False, causal=False,
              lengths=None):
    torch.manual_seed(zlib.crc32(name.encode()))
    module = fresh_weights(nn.MultiheadAttention(width, heads, bias=bias, kdim=key_width, vdim=value_width,
                                                 batch_first=True))
    inputs = {"query": draw(2, 5, width)}
    if cross:
        inputs["key"] = draw(2, 7, key_width or width)
        inputs["value"] = draw(2, 7, value_width or width)

    def call(x):
        key, value = x.get("key", x["query"]), x.get("value", x["query"])
        mask = causal_mask(5) if causal else None
        return module(x["query"], key, value, attn_mask=mask, key_padding_mask=padding(lengths, key.shape[1]),
                      need_weights=False)[0]

    arguments = dict(kind="MultiheadAttention", embed_dim=width, num_heads=heads, bias=bias, kdim=key_width or width,
                     vdim=value_width or width, causal=causal)
    record(folder, name, module, inputs, call, arguments, [("key_lengths", lengths)])


def layer(folder, name, kind, norm_first, activation, width=20, heads=5, feed_forward=28):
    """One nn.TransformerEncoderLayer or nn.TransformerDecoderLayer (causal), with padding in the second sequence."""
    torch.manual_seed(zlib.crc32(name.encode()))
    arguments = dict(d_model=width, nhead=heads, dim_feedforward=feed_forward, activation=activation,
                     norm_first=norm_first)
    module = fresh_weights(getattr(nn, kind)(**arguments, dropout=0.0, batch_first=True))
    if kind == "TransformerEncoderLayer":
        inputs, lengths = {"src": draw(2, 6, width)}, ("src_lengths", [6, 5])
        call = lambda x: module(x["src"], src_key_padding_mask=padding(lengths[1], 6))  # noqa: E731
    else:
        inputs, lengths = {"tgt": draw(2, 5, width), "memory": draw(2, 7, width)}, ("memory_lengths", [7, 4])
        call = lambda x: module(x["tgt"], x["memory"], tgt_mask=causal_mask(5),  # noqa: E731
                                memory_key_padding_mask=padding(lengths[1], 7))
    record(folder, name, module, inputs, call, {"kind": kind, **arguments}, [lengths])


def transformer(folder, name, norm_first, activation, width=12, heads=2, feed_forward=20):
    torch.manual_seed(zlib.crc32(name.encode()))
    arguments = dict(d_model=width, nhead=heads, dim_feedforward=feed_forward, activation=activation,
                     norm_first=norm_first, num_encoder_layers=2, num_decoder_layers=1)
    module = fresh_weights(nn.Transformer(**arguments, dropout=0.0, batch_first=True))
    inputs, lengths = {"src": draw(2, 6, width), "tgt": draw(2, 5, width)}, [6, 3]

    def call(x):
        hidden = padding(lengths, 6)
        return module(x["src"], x["tgt"], tgt_mask=causal_mask(5), src_key_padding_mask=hidden,
                      memory_key_padding_mask=hidden)

    record(folder, name, module, inputs, call, {"kind": "Transformer", **arguments}, [("src_lengths", lengths)])


def seq2seq(folder, name, tied):
    """The translation model from tokens to logits, the smoothed loss and every gradient; padding has id 0."""
    config = dict(vocabulary=37, width=16, heads=2, feed_forward=24, encoder_layers=2, decoder_layers=1, norm="pre",
                  activation="relu", dropout=0.0, tied=tied, max_length=32)
    torch.manual_seed(zlib.crc32(name.encode()))
    model = fresh_weights(Seq2Seq(config))
    source = torch.tensor([[5, 17, 36, 8, EOS, PAD], [9, 4, 33, 21, 10, EOS], [7, EOS, PAD, PAD, PAD, PAD]])
    target = torch.tensor([[BOS, 12, 30, 6], [BOS, 11, 25, PAD], [BOS, 19, 19, 35]])
    labels = torch.tensor([[12, 30, 6, EOS], [11, 25, EOS, PAD], [19, 19, 35, EOS]])
    model.positions = model.positions.double()
    logits = model(source, target, source == PAD)
    loss = smoothed_loss(logits, labels, 0.1)
    loss.backward()
    tensors = {**dict(model.named_parameters()), "input.source": source, "input.target": target, "input.labels": labels,
               "logits": logits, "loss": loss}
    tensors.update({f"gradient.{key}": value.grad for key, value in model.named_parameters()})
    save(folder, name, tensors, {"kind": "seq2seq", "label_smoothing": 0.1, **config})


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    attention(folder, "attention_self", 24, 3)
    attention(folder, "attention_causal", 24, 4, causal=True)
    attention(folder, "attention_one_head", 17, 1, bias=False)
    attention(folder, "attention_cross", 24, 8, cross=True, lengths=[7, 4])
    attention(folder, "attention_widths", 24, 4, cross=True, key_width=20, value_width=13, lengths=[2, 7])
    attention(folder, "attention_widths_no_bias", 24, 2, cross=True, key_width=9, value_width=30, bias=False)
    attention(folder, "attention_lengths", 24, 2, causal=True, lengths=[5, 3])
    layer(folder, "encoder_layer_pre_relu", "TransformerEncoderLayer", True, "relu")
    layer(folder, "encoder_layer_post_gelu", "TransformerEncoderLayer", False, "gelu")
    layer(folder, "decoder_layer_pre_gelu", "TransformerDecoderLayer", True, "gelu")
    layer(folder, "decoder_layer_post_relu", "TransformerDecoderLayer", False, "relu")
    warnings.filterwarnings("ignore", message="enable_nested_tensor is True")  # how nn.Transformer makes its own encoder
    transformer(folder, "transformer_pre_relu", True, "relu")
    transformer(folder, "transformer_post_gelu", False, "gelu")
    seq2seq(folder, "seq2seq_tied", True)
    seq2seq(folder, "seq2seq_untied", False)


if __name__ == "__main__":
    main()
