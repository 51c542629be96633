"""multihead.load and multihead.save: models in folders."""

from __future__ import annotations

import os
from typing import Literal

from . import _core
from .model import Model
from .pretrained import Pretrained
from .task_model import _KINDS, TaskModel


def load(folder: str | os.PathLike[str], *, precision: Literal["f32", "bf16"] = "f32") -> Model:
    """Loads a model's folder: one that `multihead train` left (of a task other than translation a multihead.TaskModel), or
    one of Hugging Face's (a multihead.Pretrained).

    Of a Hugging Face folder config.json and the weights are enough; without a tokenizer only calls with text are refused.
    precision: of the products; bf16 is faster with AMX or AVX512_BF16. Raises OSError where files are missing or damaged,
    ValueError where they do not belong together, NotImplementedError for a family that is not known.

    >>> import multihead
    >>> multihead.load("models/en-de").translate("Good morning!")
    'Guten Morgen!'
    """
    path = os.fspath(folder)
    if os.path.exists(os.path.join(path, "config.json")):
        return Pretrained(path, precision)
    return TaskModel(path, precision) if _core.model_kind(path) in _KINDS else Model(path, precision)


def save(model: Model, folder: str | os.PathLike[str]) -> None:
    """Writes a model as a folder that load() reads, and transformers where the model came from a Hugging Face folder.

    Every tensor keeps its bits and every key of config.json its value; the tokenizer's files, generation_config.json and the
    modules of sentence-transformers (pooling, dense layers, prompts) go along. Files are written whole or not at all; others in the folder stay.
    """
    if not isinstance(model, Model):
        raise TypeError(f"save: model is a {type(model).__name__}; expected what multihead.load gives")
    path = os.fspath(folder)
    os.makedirs(path, exist_ok=True)
    model._save(path)
