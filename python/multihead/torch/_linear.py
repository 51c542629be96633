"""torch.nn.functional.linear, by multihead's matrix product."""

import torch
from torch.nn import functional as F

from multihead import _core

from ._functional import is_eager

_KINDS = {torch.float32, torch.bfloat16}
_in_batches = torch._C._functorch.is_legacy_batchedtensor


def _is_ours(*tensors):
    kind = tensors[0].dtype
    if kind not in _KINDS or not is_eager(tensors):
        return False
    return all(x.dtype == kind and x.is_cpu and x.layout == torch.strided and not x.is_nested for x in tensors)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return _core.matmul(x, weight.T, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        wants = ctx.needs_input_grad
        # Where a derivative of this one may be asked for, or gradients come in batches, PyTorch must see the products.
        ours = not torch.is_grad_enabled() and not _in_batches(dy) and _is_ours(dy, x, weight)
        product = _core.matmul if ours else torch.matmul
        rows = dy.reshape(-1, dy.shape[-1])
        dx = product(dy, weight) if wants[0] else None
        d_weight = product(rows.T, x.reshape(-1, x.shape[-1])) if wants[1] else None
        return dx, d_weight, rows.sum(0) if wants[2] else None


def linear(x, weight, bias=None):
    """x (…, K) · weightᵀ + bias, weight (N, K), with gradients. The product is ours where the call is eager and its tensors are
    plain ones on the CPU in float32 or bfloat16; PyTorch's where not."""
    given = (x, weight) if bias is None else (x, weight, bias)
    if torch.is_autocast_enabled("cpu") or not _is_ours(*given):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and any(t.requires_grad for t in given):
        return _Linear.apply(x, weight, bias)
    return _core.matmul(x, weight.T, bias)
