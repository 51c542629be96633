"""An adapter: a node of ONNX's Attention operator, run by multihead.attention."""
import numpy as np
import onnx

import multihead

NAMES = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
AFTER_SOFTMAX = 3


def by_heads(x, heads):
    """(B, T, H·D) as (B, H, T, D): a view."""
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def mask_of(given, attributes, past, Tk):
    """Mask and bias. Positions start at the keys of the past, or so that the last query sits at the last valid key."""
    mask, bias = None, None
    join = lambda more: more if mask is None else mask & more
    lengths = given.get("nonpad_kv_seqlen")
    if lengths is not None:
        mask = join(multihead.lengths(lengths))
    else:
        mask = join(multihead.positions(past))
    if attributes.get("is_causal", 0):
        mask = join(multihead.causal())
    left, right = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    if left >= 0 or right >= 0:
        mask = join(multihead.window(left, right))
    dense = given.get("attn_mask")
    if dense is not None:
        short = Tk - dense.shape[-1]  # what a short mask leaves out is dropped
        fill = False if dense.dtype == bool else -np.inf
        dense = np.pad(dense, [(0, 0)] * (dense.ndim - 1) + [(0, short)], constant_values=fill) if short else dense
        if dense.dtype == bool:
            mask = join(multihead.keep(dense))
        else:
            bias = dense
    return mask, bias


def run(node, inputs):
    """The outputs by name. The scores before the softmax (qk_matmul_output_mode 0 to 2) are never held, so not given."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    present = [name for name, actual in zip(NAMES, node.input) if actual]
    given = dict(zip(present, inputs))
    flat = given["Q"].ndim == 3
    q = by_heads(given["Q"], attributes.get("q_num_heads"))
    k = by_heads(given["K"], attributes.get("kv_num_heads"))
    v = by_heads(given["V"], attributes.get("kv_num_heads"))
    past = 0
    if "past_key" in given:
        past = given["past_key"].shape[2]
        k, v = np.concatenate([given["past_key"], k], 2), np.concatenate([given["past_value"], v], 2)
    mask, bias = mask_of(given, attributes, past, k.shape[2])
    options = {"mask": mask, "bias": bias, "scale": attributes.get("scale"), "softcap": attributes.get("softcap", 0.0)}
    o, lse = multihead.attention(q, k, v, return_lse=True, **options)
    y = o.swapaxes(1, 2).reshape(*given["Q"].shape[:2], -1) if flat else o
    outputs = dict(zip(("Y", "present_key", "present_value"), (y, k, v)))
    if attributes.get("qk_matmul_output_mode", 0) == AFTER_SOFTMAX:
        outputs["qk_matmul_output"] = multihead.attention_weights(q, k, lse, **options).astype(q.dtype)
    return outputs
