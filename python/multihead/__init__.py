"""Attention on the CPU: exact, fast, with one written meaning, for NumPy, PyTorch and whatever has DLPack.

>>> import multihead, numpy as np
>>> q, k, v = np.random.randn(3, 1, 8, 512, 64).astype(np.float32)
>>> multihead.attention(q, k, v, mask=multihead.causal()).shape
(1, 8, 512, 64)

`multihead.torch` has gradients and PyTorch's own signatures, `multihead.huggingface` registers with transformers;
neither is imported unless asked for. `python -m multihead doctor` says what this machine will use.
"""

from . import _signatures
from ._core import __version__ as __version__
from ._core import (
    Bias,
    Explanation,
    KVCache,
    Mask,
    ScoreMix,
    Similarity,
    Statistics,
    alibi,
    attention,
    attention_statistics,
    attention_weights,
    build_info,
    causal,
    cosine,
    documents,
    drop,
    euclidean,
    explain,
    head_mix,
    keep,
    key_mix,
    lengths,
    machine,
    merge,
    positions,
    prefix,
    rung,
    set_threads,
    t5,
    threads,
    use_rung,
    window,
)

__all__ = [
    "Bias",
    "Explanation",
    "KVCache",
    "Mask",
    "ScoreMix",
    "Similarity",
    "Statistics",
    "alibi",
    "attention",
    "attention_statistics",
    "attention_weights",
    "build_info",
    "causal",
    "cosine",
    "documents",
    "drop",
    "euclidean",
    "explain",
    "head_mix",
    "keep",
    "key_mix",
    "lengths",
    "machine",
    "merge",
    "positions",
    "prefix",
    "rung",
    "set_threads",
    "t5",
    "threads",
    "use_rung",
    "window",
]

_signatures.install()
