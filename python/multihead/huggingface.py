"""Hugging Face transformers: attn_implementation="multihead".

>>> import multihead.huggingface, transformers
>>> multihead.huggingface.register()
>>> config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
>>> model = transformers.BertModel._from_config(config, attn_implementation="multihead").eval()
>>> out = model(input_ids=transformers.BertModel.dummy_inputs.fget(model)["input_ids"], output_attentions=True)
>>> len(out.attentions)
2
"""

import torch

from . import _core
from .torch import _op
from .torch._full import attention
from .torch._functional import attend, why_not


def _joined(position_bias, mask, causal, query, key):
    """One float mask: the bias where the pair is kept, -inf where it is not."""
    if mask is None and causal:
        mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril()
    if mask is None:
        return position_bias
    return torch.where(mask, position_bias, float("-inf")) if mask.dtype == torch.bool else position_bias + mask


def _with_cap_or_sink(query, key, value, mask, dropout, causal, scaling, softcap, sink):
    """(o, lse, the options) of what scaled_dot_product_attention does not have."""
    given = _op.options_of(mask, causal) | {"scale": scaling, "softcap": softcap or 0.0}
    if sink is not None:
        given["sink"] = sink
    o, lse = attention(query, key, value, dropout=dropout, return_lse=True, **given)
    return o, lse, given


def _asked_for(module):
    """Whether the model's call collects attentions: not every model hands output_attentions down to its attention."""
    if getattr(getattr(module, "config", None), "output_attentions", False):
        return True
    try:
        from transformers.utils.output_capturing import _active_collector
    except ImportError:  # versions that hand it down
        return False
    return any(key.endswith("attentions") for key in _active_collector.get() or ())


def attention_forward(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    is_causal=None,
    position_bias=None,
    softcap=None,
    s_aux=None,
    output_attentions=None,
    **rest,
):
    """An attention function as transformers calls it: (B, H, L, E) in, (B, L, H, E) and the weights or None out."""
    if rest.get("cache") is not None:
        raise NotImplementedError("multihead: paged caches of transformers are not supported; expected use_cache without paging")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(query.shape[2] > 1 and attention_mask is None and causal)
    if position_bias is not None:
        attention_mask = _joined(position_bias, attention_mask, causal, query, key)
        causal = False
    reason = why_not(query, key, value, attention_mask)
    if reason is not None:
        raise NotImplementedError(f"multihead: {reason}")
    if output_attentions is None:
        output_attentions = _asked_for(module)
    weights = None
    if softcap or s_aux is not None:
        given = query, key, value, attention_mask, dropout, causal, scaling, softcap, s_aux
        o, lse, options = _with_cap_or_sink(*given)
        if output_attentions:
            with torch.no_grad():
                weights = _core.attention_weights(query, key, lse, **options)
    else:
        o, lse, _ = attend(query, key, value, attention_mask, float(dropout), causal, scaling)
        if output_attentions:
            with torch.no_grad():
                weights = _op.attention_weights(query, key, lse, attention_mask, causal, scaling)
    return o.transpose(1, 2).contiguous(), None if weights is None else weights.to(query.dtype)


def register(name: str = "multihead") -> None:
    """Makes attn_implementation="multihead" known to transformers, for encoder and decoder models.

    output_attentions=True gives the weights (before dropout, without a gradient) and stays on the fused path.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, sdpa_mask)
