"""multihead.attention with gradients: all its options, on tensors of PyTorch."""

from collections.abc import Sequence
from typing import Any, Literal, overload

import torch
from torch import Tensor

from multihead import _core

from . import _gpu, _op
from ._functional import in_batches, is_watched, not_dense, one_by_one

_GIVEN = 8  # tensors a call may have a gradient for: q, k, v, dense bias, slopes or table, sink, tau, mixing matrix


class _Gradients(torch.autograd.Function):
    """The backward pass: it has no derivative of its own, and says so."""

    @staticmethod
    def forward(ctx, *given):
        *tensors, o, lse, d_o, d_lse, wants, options = given
        if tensors[0].is_cuda:
            wanted = [x if n < 3 or wants[n] else None for n, x in enumerate(tensors)]
            found = _gpu.gradients(wanted, o, lse, d_o, d_lse, options)
            return tuple(None if g is None else g.to(x.device, x.dtype).reshape(x.shape) for g, x in zip(found, tensors))
        found = _core.attention_gradients(*tensors[:3], o, lse, d_o, d_lse, wants=wants, **options)
        return tuple(None if g is None else g.to(x.dtype).reshape(x.shape) for g, x in zip(found, tensors))

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError("multihead.torch.attention: it is differentiable once; a second derivative was asked for")


class _Full(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *given):
        *tensors, options = given
        if tensors[0].is_cuda:
            o, lse = _gpu.forward(*tensors[:3], options)
        else:
            o, lse = _core.attention(*tensors[:3], return_lse=True, **options)
        ctx.save_for_backward(*tensors, o, lse)
        ctx.options = options
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    def jvp(ctx, *tangents):
        raise NotImplementedError("multihead.torch.attention: its derivatives run backwards; one that runs forwards was asked for")

    @staticmethod
    def backward(ctx, d_o, d_lse):
        if d_o is None and d_lse is None:
            return (None,) * (_GIVEN + 1)
        if in_batches(d_o, d_lse):
            return one_by_one(lambda *one: _Full.backward(ctx, *one), d_o, d_lse)
        *tensors, o, lse = ctx.saved_tensors
        d_o = torch.zeros_like(o) if d_o is None else _op.unit(d_o)
        wants = list(ctx.needs_input_grad[:_GIVEN])
        return (*_Gradients.apply(*tensors, o, lse, d_o, d_lse, wants, ctx.options), None)


def attend_fully(tensors, options):
    """(o, lse): tensors are q, k, v, dense bias, slopes or table, sink, tau, mixing matrix, or None."""
    return _Full.apply(*tensors, options)


def _tensor(x):
    return x if isinstance(x, Tensor) else None


def _biases(bias):
    """The dense one with a last stride that the kernels take, its tensor, and the tensor behind ALiBi or T5."""
    listed = [b if not isinstance(b, Tensor) else _op.unit(b, also=0) for b in (bias if isinstance(bias, (list, tuple)) else [bias])]
    dense = next((b for b in listed if isinstance(b, Tensor)), None)
    relative = next((_tensor(b.given) for b in listed if isinstance(b, _core.Bias)), None)
    return listed, dense, relative


def _refuse(*tensors):
    for name, x in zip("qkv", tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"multihead.torch.attention: {name} is a {type(x).__name__}; expected a torch.Tensor")
        reason = not_dense(name, x, tensors[0].device)
        if reason is not None:
            raise NotImplementedError(f"multihead.torch.attention: {reason}")
    if is_watched():
        raise NotImplementedError(
            "multihead.torch.attention: torch.func, torch.jit.trace and modes of PyTorch do not see into this call; expected"
            " multihead.torch.scaled_dot_product_attention")


_Bias = Tensor | _core.Bias | Sequence[Tensor | _core.Bias] | None


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: _core.Mask | None = None,
    bias: _Bias = None,
    scale: float | None = None,
    similarity: _core.Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: Tensor | None = None,
    return_lse: Literal[False] = False,
    cu_seqlens_q: Sequence[int] | Tensor | None = None,
    cu_seqlens_k: Sequence[int] | Tensor | None = None,
    score_mix: _core.ScoreMix | None = None,
) -> Tensor: ...
@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: _core.Mask | None = None,
    bias: _Bias = None,
    scale: float | None = None,
    similarity: _core.Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: Tensor | None = None,
    return_lse: Literal[True],
    cu_seqlens_q: Sequence[int] | Tensor | None = None,
    cu_seqlens_k: Sequence[int] | Tensor | None = None,
    score_mix: _core.ScoreMix | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: _core.Mask | None = None,
    bias: _Bias = None,
    scale: float | None = None,
    similarity: _core.Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: Tensor | None = None,
    return_lse: bool,
    cu_seqlens_q: Sequence[int] | Tensor | None = None,
    cu_seqlens_k: Sequence[int] | Tensor | None = None,
    score_mix: _core.ScoreMix | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@torch.compiler.disable
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: _core.Mask | None = None,
    bias: _Bias = None,
    scale: float | None = None,
    similarity: _core.Similarity | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    seed: int | None = None,
    sink: Tensor | None = None,
    return_lse: bool = False,
    cu_seqlens_q: Sequence[int] | Tensor | None = None,
    cu_seqlens_k: Sequence[int] | Tensor | None = None,
    score_mix: _core.ScoreMix | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """multihead.attention on tensors, with gradients; the options mean what they mean there.

    They reach q, k and v, a dense bias, the slopes of multihead.alibi, the table of multihead.t5, sink, the tau of
    multihead.cosine where it is a tensor, and the matrix of head_mix or key_mix; once, not twice. torch.compile leaves the
    call as it is.

    >>> import torch, multihead, multihead.torch
    >>> q, k, v = (torch.randn(1, 4, 32, 16, requires_grad=True) for _ in range(3))
    >>> sink, slopes = torch.zeros(4, requires_grad=True), torch.rand(4, requires_grad=True)
    >>> o = multihead.torch.attention(q, k, v, mask=multihead.causal(), bias=multihead.alibi(slopes), softcap=30.0, sink=sink)
    >>> o.square().sum().backward()
    >>> q.grad.shape, sink.grad.shape, slopes.grad.shape
    (torch.Size([1, 4, 32, 16]), torch.Size([4]), torch.Size([4]))
    """
    _refuse(q, k, v)
    q, k, v = _op.unit(q), _op.unit(k), _op.unit(v)
    options: dict[str, Any] = {"mask": mask, "scale": scale, "similarity": similarity, "softcap": softcap, "sink": sink}
    options |= {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "score_mix": score_mix}
    dense = relative = None
    if bias is not None:
        options["bias"], dense, relative = _biases(bias)
    if dropout > 0:
        options |= {"dropout": dropout, "seed": int(_op.drawn_seed()) if seed is None else seed}
    if q.is_cuda:
        options = _gpu.on_cpu(options)
    of = lambda each: None if each is None else _tensor(each.given)
    o, lse = _Full.apply(q, k, v, dense, relative, _tensor(sink), of(similarity), of(score_mix), options)
    return (o, lse) if return_lse else o
