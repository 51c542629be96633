"""A scope in which F.scaled_dot_product_attention is ours on CPU tensors."""

import sys
import warnings
from collections import Counter
from types import TracebackType
from typing import Any

import torch
from torch.nn import functional

from ._functional import scaled_dot_product_attention, why_not

_NAME = "scaled_dot_product_attention"


def _holders(function: Any) -> list[tuple[dict[str, Any], str]]:
    """The modules that imported the function by name: where, and as what. PyTorch's own tables keep what they hold."""
    found = [(vars(functional), _NAME)]
    for name, module in list(sys.modules.items()):
        if module is not None and not name.startswith("torch."):
            found += [(vars(module), key) for key, value in list(vars(module).items()) if value is function]
    return found


class Patch:
    """What a patch did: calls taken, and reasons for those it left to PyTorch, with how often each came."""

    def __init__(self, warn: bool) -> None:
        self.taken = 0
        self.left: Counter[str] = Counter()
        self._warn = warn
        self._before: Any = None
        self._layer: Any = None
        self._held: list[tuple[dict[str, Any], str]] = []
        self._fast = True

    def __enter__(self) -> "Patch":
        self._before = functional.scaled_dot_product_attention
        self._layer = functional.multi_head_attention_forward
        self._held = _holders(self._before)
        for names, key in self._held:
            names[key] = self._call
        functional.multi_head_attention_forward = self._layer_call
        # In eval mode nn.TransformerEncoder and nn.MultiheadAttention else go a way of their own, past this function.
        self._fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for names, key in self._held:
            names[key] = self._before
        functional.multi_head_attention_forward = self._layer
        torch.backends.mha.set_fastpath_enabled(self._fast)

    def _leave(self, reason: str) -> None:
        if self._warn and reason not in self.left:
            warnings.warn(f"multihead.torch.patch: left to PyTorch: {reason}", stacklevel=3)
        self.left[reason] += 1

    def _call(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        given = query, key, value, attn_mask, dropout_p, is_causal
        reason = why_not(query, key, value, attn_mask)
        if reason is None:
            try:
                o = scaled_dot_product_attention(*given, scale, enable_gqa)
            except (NotImplementedError, TypeError, ValueError) as error:
                reason = str(error).removeprefix(f"{_NAME}: ")
            else:
                self.taken += 1
                return o
        self._leave(reason)
        return self._before(*given, scale=scale, enable_gqa=enable_gqa)

    def _layer_call(self, *given, **more):
        if given[15] if len(given) > 15 else more.get("need_weights", True):
            self._leave("nn.MultiheadAttention(need_weights=True) multiplies by itself; expected need_weights=False")
        return self._layer(*given, **more)

    def __str__(self) -> str:
        lines = [f"{self.taken} calls by multihead, {sum(self.left.values())} left to PyTorch"]
        return "\n".join(lines + [f"  {count} × {reason}" for reason, count in self.left.most_common()])


def patch(warn: bool = False) -> Patch:
    """Within `with`, torch.nn.functional.scaled_dot_product_attention is multihead's on CPU tensors.

    Names that modules imported before are reached too, and nn.TransformerEncoder in eval mode. What the kernels do not take
    goes to PyTorch, nn.MultiheadAttention(need_weights=True) among it, and the patch remembers why; warn=True also says it,
    once for each reason.

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
