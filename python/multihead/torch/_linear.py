"""torch.nn.functional.linear, by multihead's matrix product."""

import torch
from torch.autograd import forward_ad
from torch.nn import functional as F

from multihead import _core

from ._functional import is_eager

# Products that are worth the call: below, in float32, PyTorch's are as fast or faster (16 rows, 64 → 192: 10 against 12 µs;
# Zen 4, November 2026); in bfloat16 they take three times as long.
_SMALLEST = {torch.float32: 2**20, torch.bfloat16: 0}
# MKL knows its maker's processors: with ours the layer took 1.0 to 1.45 times as long in float32 (Xeon, family 6, model 207).
if "Intel" in _core.machine()["cpu"]:
    del _SMALLEST[torch.float32]
_compiling = torch.compiler.is_compiling
_in_batches = torch._C._functorch.is_legacy_batchedtensor


def _is_ours(*tensors):
    kind = tensors[0].dtype
    fits = lambda x: x.dtype == kind and x.is_cpu and x.layout == torch.strided and not x.is_nested and not x.is_neg()
    return is_eager(tensors) and all(fits(x) for x in tensors)


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
        as_rows = lambda t: t.reshape(t.shape[:-1].numel(), t.shape[-1])
        rows = as_rows(dy)
        dx = product(dy, weight) if wants[0] else None
        d_weight = product(rows.T, as_rows(x)) if wants[1] else None
        return dx, d_weight, rows.sum(0) if wants[2] else None


def linear(x, weight, bias=None):
    """x (…, K) · weightᵀ + bias, weight (N, K), with gradients. The product is ours where the call is eager and its tensors are
    plain ones on the CPU in bfloat16 or, not small and not on an Intel processor, in float32; PyTorch's where not, or where
    derivatives run forwards."""
    smallest = None if _compiling() or forward_ad._current_level >= 0 else _SMALLEST.get(x.dtype)
    if smallest is None or x.numel() * weight.size(0) < smallest:
        return F.linear(x, weight, bias)
    given = (x, weight) if bias is None else (x, weight, bias)
    if torch.is_autocast_enabled("cpu") or not _is_ours(*given):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and any(t.requires_grad for t in given):
        return _Linear.apply(x, weight, bias)
    return _core.matmul(x, weight.T, bias)
