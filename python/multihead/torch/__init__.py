"""PyTorch on the CPU: its own signatures and meaning, with gradients, at the speed of multihead's kernels.

>>> import torch, multihead.torch
>>> q, k, v = torch.randn(3, 2, 8, 128, 64)
>>> multihead.torch.scaled_dot_product_attention(q, k, v, is_causal=True).shape
torch.Size([2, 8, 128, 64])

Once this is imported, multihead works on the OpenMP threads that PyTorch already has, instead of its own: two pools on the
same cores would wait for each other's spinning threads. share_threads(False) undoes it.
"""

from .._core import share_threads
from ._full import attention
from ._functional import scaled_dot_product_attention
from ._module import MultiheadAttention
from ._patch import Patch, patch

__all__ = ["MultiheadAttention", "Patch", "attention", "patch", "scaled_dot_product_attention", "share_threads"]

share_threads(True)
