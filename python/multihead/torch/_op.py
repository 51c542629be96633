"""The calls into the kernels as operators of PyTorch: torch.ops.multihead.*, for compile, vmap and subclasses.

Shapes are those of the kernels: q (B, H, L, E), k (B, Hkv, S, E), v (B, Hkv, S, Ev); mask bool or float, broadcastable to
(B, H, L, S); lse float32 (B, H, L). Eager calls on plain tensors take the shorter way of _functional.py.
"""

import torch
from torch import Tensor

from multihead import _core

TOP_LEFT = _core.causal(0)


def unit(x, also=1):
    """x with a last stride of 1, as the kernels need it, or one that is `also` good."""
    return x if x.dim() == 0 or x.stride(-1) in (1, also) or x.shape[-1] <= 1 else x.contiguous()


def drawn_seed():
    """From PyTorch's generator, so that torch.manual_seed is obeyed."""
    return torch.randint(2**63 - 1, (), dtype=torch.int64)


def options_of(mask, causal):
    """The keyword arguments of _core for PyTorch's mask and is_causal."""
    if mask is None:
        return {"mask": TOP_LEFT} if causal else {}
    mask = unit(mask, also=0)
    if mask.dtype == torch.bool:
        keep = _core.keep(mask)
        return {"mask": keep & TOP_LEFT if causal else keep}
    return {"mask": TOP_LEFT, "bias": mask} if causal else {"bias": mask}


@torch.library.custom_op("multihead::attention", mutates_args=(), device_types="cpu")
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
) -> tuple[Tensor, Tensor]:
    given = options_of(mask, causal)
    if dropout > 0:
        given.update(dropout=dropout, seed=int(seed))
    return _core.attention(unit(q), unit(k), unit(v), scale=scale, return_lse=True, **given)


@attention.register_fake
def _(q, k, v, mask, seed, dropout, causal, scale):
    return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(q.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("multihead::attention_backward", mutates_args=(), device_types="cpu")
def attention_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    d_o: Tensor,
    d_lse: Tensor | None,
    mask: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    wants: list[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    given = options_of(mask, causal)
    if dropout > 0:
        given.update(dropout=dropout, seed=int(seed))
    gradients = backward(q, k, v, o, lse, d_o, d_lse, wants, scale, given)
    return tuple(q.new_empty(0) if g is None else g for g in gradients)


@attention_backward.register_fake
def _(q, k, v, o, lse, d_o, d_lse, mask, seed, dropout, causal, scale, wants):
    like = [q, k, v, mask]
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) if w else q.new_empty(0) for x, w in zip(like, wants))


def backward(q, k, v, o, lse, d_o, d_lse, wants, scale, given):
    """(dq, dk, dv, dmask), None where not wanted; the gradient of a mask has the mask's type."""
    wants = [*wants, False, False, False, False]  # no ALiBi or T5, sink, tau, mixing in PyTorch's call
    dq, dk, dv, dbias, *_ = _core.attention_gradients(unit(q), unit(k), unit(v), o, lse, unit(d_o), d_lse, wants=wants, scale=scale, **given)
    return dq, dk, dv, dbias if dbias is None else dbias.to(given["bias"].dtype)


def setup_context(ctx, inputs, output):
    q, k, v, mask, seed, ctx.dropout, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, *output, mask, seed)
    ctx.set_materialize_grads(False)


def backward_formula(ctx, d_o, d_lse, call=attention_backward):
    if d_o is None and d_lse is None:
        return (None,) * 8
    q, k, v, o, lse, mask, seed = ctx.saved_tensors
    d_o = torch.zeros_like(o) if d_o is None else d_o
    wants = list(ctx.needs_input_grad[:4])
    gradients = call(q, k, v, o, lse, d_o, d_lse, mask, seed, ctx.dropout, ctx.causal, ctx.scale, wants)
    return (*(g if w else None for g, w in zip(gradients, wants)), None, None, None, None)


attention.register_autograd(backward_formula, setup_context=setup_context)


@torch.library.custom_op("multihead::attention_weights", mutates_args=(), device_types="cpu")
def attention_weights(q: Tensor, k: Tensor, lse: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    return _core.attention_weights(unit(q), unit(k), lse, scale=scale, **options_of(mask, causal))


@attention_weights.register_fake
def _(q, k, lse, mask, causal, scale):
    return q.new_empty((*q.shape[:-1], k.shape[-2]), dtype=torch.float32)


def _folded(x, dim, size):
    """x with its vmapped axis (None: it has none) in front and joined with the batch."""
    x = x.unsqueeze(0).expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _folded_mask(mask, dim, size, batch):
    if mask is None:
        return None
    mask = mask.unsqueeze(0) if dim is None else mask.movedim(dim, 0)
    while mask.dim() < 5:
        mask = mask.unsqueeze(1)
    mask = mask.expand(size, batch, *mask.shape[2:])
    return mask.reshape(size * batch, *mask.shape[2:])


def _refuse_dropout(dropout):
    if dropout > 0:
        raise NotImplementedError("multihead.torch: dropout inside vmap has no meaning that both agree on; expected dropout_p=0")


@attention.register_vmap
def _(info, in_dims, q, k, v, mask, seed, dropout, causal, scale):
    _refuse_dropout(dropout)
    size = info.batch_size
    folded = [_folded(x, dim, size) for x, dim in zip((q, k, v), in_dims)]
    mask = _folded_mask(mask, in_dims[3], size, folded[0].shape[0] // size)
    o, lse = attention(*folded, mask, seed, dropout, causal, scale)
    return (o.unflatten(0, (size, -1)), lse.unflatten(0, (size, -1))), (0, 0)


@attention_backward.register_vmap
def _(info, in_dims, q, k, v, o, lse, d_o, d_lse, mask, seed, dropout, causal, scale, wants):
    _refuse_dropout(dropout)
    size = info.batch_size
    folded = [None if x is None else _folded(x, dim, size) for x, dim in zip((q, k, v, o, lse, d_o, d_lse), in_dims)]
    batch = folded[0].shape[0] // size
    whole = _folded_mask(mask, in_dims[7], size, batch)
    gradients = attention_backward(*folded, whole, seed, dropout, causal, scale, wants)
    out = [g.unflatten(0, (size, batch)) if w else g.expand(size, 0) for g, w in zip(gradients[:3], wants)]
    if not wants[3]:
        return (*out, gradients[3].expand(size, 0)), (0, 0, 0, 0)
    shape = mask.shape if in_dims[7] is None else mask.movedim(in_dims[7], 0).shape[1:]
    d_mask = gradients[3].unflatten(0, (size, batch))
    return (*out, torch.stack([each.sum_to_size(shape) for each in d_mask])), (0, 0, 0, 0)


@torch.library.custom_op("multihead::mean_weights", mutates_args=(), device_types="cpu")
def mean_weights(q: Tensor, k: Tensor, lse: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    """The mean over heads, (B, L, S), after a call: a few rows at a time, so that all weights are never held together."""
    q, k, given = unit(q), unit(k), options_of(mask, causal)
    B, H, L, _ = q.shape
    mean = q.new_empty((B, L, k.shape[2]), dtype=torch.float32)
    step = max(8, (4 << 20) // max(1, 4 * B * H * k.shape[2]))
    for begin in range(0, L, step):
        rows = list(range(begin, min(begin + step, L)))
        some = _core.attention_weights(q, k, lse, rows=rows, scale=scale, **given)
        torch.mean(some, 1, out=mean[:, begin : begin + len(rows)])
    return mean


@mean_weights.register_fake
def _(q, k, lse, mask, causal, scale):
    return q.new_empty((q.shape[0], q.shape[2], k.shape[2]), dtype=torch.float32)
