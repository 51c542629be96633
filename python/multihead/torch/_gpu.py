"""Calls on tensors of an NVIDIA GPU: in PyTorch's memory, on its current stream, by libmultihead_cuda.so."""

from typing import Any

import torch
from torch import Tensor

from multihead import _core

from . import _op


def stream_of(x: Tensor) -> int:
    return torch.cuda.current_stream(x.device).cuda_stream


def forward(q: Tensor, k: Tensor, v: Tensor, options: dict[str, Any], out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(o, lse) of tensors whose last stride is 1."""
    if out is None:
        out = q.new_empty((*q.shape[:-1], v.shape[-1]))
    lse = q.new_empty(q.shape[:-1] if q.dim() == 4 else q.shape[:-1][::-1], dtype=torch.float32)
    _core.gpu_attention(q, k, v, out, lse, stream_of(q), **options)
    return out, lse


def gradients(tensors, o, lse, d_o, d_lse, options):
    """In the order of `tensors`: q, k, v, a dense bias, slopes or table, sink, tau; None where there is no tensor."""
    q, k, v, dense, relative, sink, tau = tensors[:7]
    # Keys past a sequence's length are not written.
    like = torch.empty_like if options.get("mask") is None else torch.zeros_like
    made = [like(x, memory_format=torch.contiguous_format) for x in (q, k, v)]
    made.append(None if dense is None else torch.empty(dense.shape, device=q.device))
    on_cpu = [None if x is None else torch.empty(shape) for x, shape in ((relative, getattr(relative, "shape", None)), (sink, q.shape[1:2]), (tau, q.shape[1:2]))]
    _core.gpu_gradients((q, k, v, o, lse, d_o, d_lse), (*made, *on_cpu), stream_of(q), **options)
    return (*made, *on_cpu, None)


def on_cpu(options: dict[str, Any]) -> dict[str, Any]:
    """What the kernels' plan reads on the CPU, there."""
    small = {"sink", "cu_seqlens_q", "cu_seqlens_k"}
    return {name: x.detach().cpu() if name in small and isinstance(x, Tensor) else x for name, x in options.items() if x is not None}


def attention(q: Tensor, k: Tensor, v: Tensor, *, return_lse: bool = False, out: Tensor | None = None, **options: Any):
    """multihead.attention where q lies on a GPU. Without gradients."""
    if torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in (q, k, v)):
        raise ValueError("attention: q, k or v requires a gradient, which this call does not record; expected multihead.torch.attention")
    if v is None:
        raise NotImplementedError("attention: q lies on a GPU; expected the CPU for a KVCache")
    o, lse = forward(_op.unit(q), _op.unit(k), _op.unit(v), on_cpu(options), out)
    return (o, lse) if return_lse else o
