"""Attention on the CPU: exact, fast, with one documented semantics, for NumPy, PyTorch and whatever has DLPack.

>>> import multihead, numpy as np
>>> q, k, v = np.random.randn(3, 1, 8, 512, 64).astype(np.float32)
>>> multihead.attention(q, k, v, mask=multihead.causal()).shape
(1, 8, 512, 64)

Translation models, Hugging Face's models, training and tokenizers, as the program has them:

>>> multihead.load("models/en-de").translate("Where is the station?")
'Wo ist der Bahnhof?'

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
from .folders import load, save
from .model import Attention, Candidate, Model, Sentence, Translation
from .page import AttentionPage, show
from .pretrained import Pretrained
from .recording import RecordedLayer, Recording
from .task_model import TaskModel
from .task_results import Answer, Classification, Entity, Filled, Filling, Gap, Tagging
from .tokenizer import Encoding, Tokenizer
from .training import (
    TrainCheckpoint,
    TrainEvent as TrainEvent,
    TrainMessage,
    TrainResult,
    TrainStart,
    TrainStep,
    TrainValidation,
    TrainWait,
    train,
)

__all__ = [
    "Answer",
    "Attention",
    "AttentionPage",
    "Bias",
    "Candidate",
    "Classification",
    "Encoding",
    "Entity",
    "Explanation",
    "Filled",
    "Filling",
    "Gap",
    "KVCache",
    "Mask",
    "Model",
    "Pretrained",
    "RecordedLayer",
    "Recording",
    "ScoreMix",
    "Sentence",
    "Similarity",
    "Statistics",
    "Tagging",
    "TaskModel",
    "Tokenizer",
    "TrainCheckpoint",
    "TrainMessage",
    "TrainResult",
    "TrainStart",
    "TrainStep",
    "TrainValidation",
    "TrainWait",
    "Translation",
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
    "load",
    "machine",
    "merge",
    "positions",
    "prefix",
    "rung",
    "save",
    "set_threads",
    "show",
    "t5",
    "threads",
    "train",
    "use_rung",
    "window",
]

_signatures.install()
