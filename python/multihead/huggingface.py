"""Hugging Face transformers: attn_implementation="multihead".

>>> import multihead.huggingface, transformers
>>> multihead.huggingface.register()
>>> config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
>>> model = transformers.BertModel._from_config(config, attn_implementation="multihead").eval()
>>> out = model(input_ids=transformers.BertModel.dummy_inputs.fget(model)["input_ids"], output_attentions=True)
>>> len(out.attentions)
2
"""

import functools
import sys
import warnings

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
    sinks=None,
    **rest,
):
    """An attention function as transformers calls it: (B, H, L, E) in, (B, L, H, E) and the weights or None out."""
    if rest.get("cache") is not None:
        raise NotImplementedError("multihead: paged caches of transformers are not supported; expected use_cache without paging")
    unknown = [key for key, x in rest.items() if isinstance(x, torch.Tensor) and any(part in key for part in ("bias", "sink", "alibi"))]
    if unknown:
        raise NotImplementedError(f"multihead: {type(module).__name__} also gives {', '.join(unknown)}, which has no meaning here")
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
    if sinks is not None:  # (B, H, L, 1): one more logit of each query, without a value
        kept = torch.sigmoid(lse - sinks.squeeze(-1).float()).unsqueeze(-1)
        o, weights = (o * kept).to(o.dtype), None if weights is None else weights * kept.detach()
    return o.transpose(1, 2).contiguous(), None if weights is None else weights.to(query.dtype)


def _kinds(model):
    """A class of models and all that are made of it, of those that are loaded."""
    return [model, *(each for below in model.__subclasses__() for each in _kinds(below))]


@functools.cache
def _takes_bools(config_class) -> bool:
    """Whether every model of the configuration hands its mask to the attention function, where a bool one is understood.

    Others add the mask to scores of their own, or put more keys behind it: those need floats, as eager's are.
    """
    from transformers import PreTrainedModel

    models = [model for model in _kinds(PreTrainedModel) if model.config_class is config_class]
    return bool(models) and all(model._supports_attention_backend and model._supports_sdpa for model in models)


def attention_mask(*given, config=None, **more):
    """A mask function as transformers calls it: bools, or None where causality alone is left; floats for models that add them."""
    from transformers.masking_utils import eager_mask, sdpa_mask

    make = sdpa_mask if _takes_bools(type(config)) else eager_mask
    return make(*given, config=config, **more)


def _complete_tables(model, name):
    """Where a family looks its attention up in a table of its own, ours is the eager one: it calls no attention function."""
    for table in list(vars(sys.modules[type(model).__module__]).values()):
        if isinstance(table, dict) and "eager" in table and name not in table and isinstance(table["eager"], type):
            table[name] = table["eager"]


def _watch_choices(name):
    """Lets every model that is told to use `name` come by here first."""
    from transformers import PreTrainedModel

    choose = PreTrainedModel.get_correct_attn_implementation

    @functools.wraps(choose)
    def watched(self, requested_attention, *given, **more):
        if requested_attention == name:
            _complete_tables(self, name)
            if not self._supports_attention_backend:
                warnings.warn(
                    f"multihead: {type(self).__name__} does not say that it calls attention functions; where it computes attention"
                    f" by itself, attn_implementation={name!r} changes nothing",
                    stacklevel=2,
                )
        return choose(self, requested_attention, *given, **more)

    PreTrainedModel.get_correct_attn_implementation = watched


def register(name: str = "multihead") -> None:
    """Makes attn_implementation="multihead" known to transformers, for encoder and decoder models.

    output_attentions=True gives the weights (before dropout, without a gradient) and stays on the fused path. Families that
    compute attention by themselves go on doing so, with a warning.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    if name not in AttentionInterface._global_mapping:
        _watch_choices(name)
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, attention_mask)
