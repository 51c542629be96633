"""A scope in which F.scaled_dot_product_attention is ours on CPU tensors."""

import warnings
from collections import Counter

from torch.nn import functional

from ._functional import scaled_dot_product_attention, why_not


class Patch:
    """What a patch did: calls taken, and reasons for those it left to PyTorch, with how often each came."""

    def __init__(self, warn):
        self.taken = 0
        self.left = Counter()
        self._warn = warn
        self._before = None

    def __enter__(self):
        self._before = functional.scaled_dot_product_attention
        functional.scaled_dot_product_attention = self._call
        return self

    def __exit__(self, *error):
        functional.scaled_dot_product_attention = self._before

    def _call(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        reason = why_not(query, key, value, attn_mask)
        if reason is None:
            self.taken += 1
            return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        if self._warn and reason not in self.left:
            warnings.warn(f"multihead.torch.patch: left to PyTorch: {reason}", stacklevel=2)
        self.left[reason] += 1
        return self._before(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    def __str__(self):
        lines = [f"{self.taken} calls by multihead, {sum(self.left.values())} left to PyTorch"]
        return "\n".join(lines + [f"  {count} × {reason}" for reason, count in self.left.most_common()])


def patch(warn: bool = False) -> Patch:
    """Within `with`, torch.nn.functional.scaled_dot_product_attention is multihead's on CPU tensors.

    What the kernels do not take goes to PyTorch, and the patch remembers why; warn=True also says it, once for each reason.

    >>> import torch, multihead.torch
    >>> q = torch.randn(1, 4, 16, 32)
    >>> with multihead.torch.patch() as p:
    ...     _ = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    ...     _ = torch.nn.functional.scaled_dot_product_attention(q.double(), q.double(), q.double())
    >>> print(p)
    1 calls by multihead, 1 left to PyTorch
      1 × query holds torch.float64; expected float32, bfloat16 or float16
    """
    return Patch(warn)
