#!/usr/bin/env python3
"""Writes a model folder of ours as a CTranslate2 model, f32. usage: ctranslate.py FOLDER OUT"""
import pathlib
import sys

import numpy as np
from ctranslate2.specs import TransformerSpec, common_spec
from safetensors.torch import load_file
from tokenizers import Tokenizer

from seq2seq import sinusoid
from settings import read_settings


def set_linear(spec, weight, bias=None):
    spec.weight = np.ascontiguousarray(weight)
    if bias is not None:
        spec.bias = np.ascontiguousarray(bias)


def set_norm(spec, weights, name):
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def set_attention(spec, weights, name, is_self):
    """CTranslate2 keeps q, k and v of self-attention in one matrix, q apart from k and v elsewhere."""
    weight, bias = weights[f"{name}.in_proj_weight"], weights[f"{name}.in_proj_bias"]
    width = weight.shape[1]
    parts = [slice(None)] if is_self else [slice(width), slice(width, None)]
    for linear, part in zip(spec.linear, parts):
        set_linear(linear, weight[part], bias[part])
    set_linear(spec.linear[-1], weights[f"{name}.out_proj.weight"], weights[f"{name}.out_proj.bias"])


def set_layer(spec, weights, name, norms):
    """norms: the names of the norms before self-attention, cross-attention (decoder) and feed-forward."""
    set_attention(spec.self_attention, weights, f"{name}.self_attn", True)
    set_norm(spec.self_attention.layer_norm, weights, f"{name}.{norms[0]}")
    if len(norms) == 3:
        set_attention(spec.attention, weights, f"{name}.multihead_attn", False)
        set_norm(spec.attention.layer_norm, weights, f"{name}.{norms[1]}")
    set_norm(spec.ffn.layer_norm, weights, f"{name}.{norms[-1]}")
    for i in (0, 1):
        linear = f"{name}.linear{i + 1}"
        set_linear((spec.ffn.linear_0, spec.ffn.linear_1)[i], weights[f"{linear}.weight"], weights[f"{linear}.bias"])


def convert(folder, out):
    folder = pathlib.Path(folder)
    model = read_settings(folder / "config.toml")["model"]
    if model["norm"] != "pre":
        raise SystemExit("ctranslate: norm is 'post'; CTranslate2's post-norm has no final norms, this model does")
    # f32 whatever the file holds: numpy knows no bf16
    weights = {name: value.float().numpy() for name, value in load_file(folder / "model.safetensors").items()}
    activation = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}[model["activation"]]
    spec = TransformerSpec.from_config((model["encoder_layers"], model["decoder_layers"]), model["heads"],
                                       pre_norm=True, activation=activation)
    positions = sinusoid(model["max_length"] + 1, model["width"]).float().numpy()
    embedding = weights["embedding.weight"]
    spec.encoder.embeddings[0].weight = embedding
    spec.decoder.embeddings.weight = embedding if model["tied"] else weights["target_embedding.weight"]
    set_linear(spec.decoder.projection, embedding if model["tied"] else weights["output.weight"])
    for side, name, norms in ((spec.encoder, "encoder", ("norm1", "norm2")),
                              (spec.decoder, "decoder", ("norm1", "norm2", "norm3"))):
        side.scale_embeddings = True
        side.position_encodings.encodings = positions
        set_norm(side.layer_norm, weights, f"{name}.norm")
        for i, layer in enumerate(side.layer):
            set_layer(layer, weights, f"{name}.layers.{i}", norms)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    tokens += [f"<unused {i}>" for i in range(len(tokens), len(embedding))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    spec.save(str(out))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    convert(sys.argv[1], sys.argv[2])
