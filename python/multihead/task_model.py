"""multihead.TaskModel: classifiers, taggers and language models of our own."""

from __future__ import annotations

import json
import os
from typing import Any, Literal, NoReturn

from . import _core
from .generation import _first_or_all, _how
from .text_model import TextModel
from .tokenizer import _texts, _whole

# What model.safetensors says it is.
_KINDS = ("classify", "tag", "language_model")


class TaskModel(TextModel):
    """A classifier, tagger or language model that `multihead train` left. Made by multihead.load; threads may share it."""

    def __init__(self, folder: str | os.PathLike[str], precision: Literal["f32", "bf16"] = "f32") -> None:
        if precision not in ("f32", "bf16"):
            raise ValueError(f"load: precision is {precision!r}; expected 'f32' or 'bf16'")
        self.folder = os.fspath(folder)
        self.precision = precision
        self._said = _core.describe_folder(self.folder)
        self._prepare(self._said["verb"])
        self._tasks.prepare(self._verb)

    @property
    def config(self) -> dict[str, Any]:
        """The model's sizes and choices, by the keys of a configuration's [model] section, and its labels."""
        said: dict[str, Any] = json.loads(self._said["config"])
        return said

    @property
    def labels(self) -> list[str]:
        """Of a classifier or tagger, by number."""
        return list(self.config.get("labels", []))

    def generate(self, inputs: Any, attention_mask: Any = None, *, seed: int | None = None, **options: Any) -> Any:
        """What a language model writes behind a prompt, without the GIL: text for a text, for several a list.

        Without options it draws every token with its own probability, up to the longest text it can read. Options are the
        keys of a generation_config.json, as Pretrained.generate has them; num_beams above 1 searches instead of drawing.
        """
        if self._verb != "generate":
            raise NotImplementedError(f"generate: {self.folder} is a {self._said_as()}; expected a language model")
        if attention_mask is not None:
            raise ValueError("generate: attention_mask is given with text; expected it with ids of a Hugging Face folder's model")
        one = isinstance(inputs, str)
        prompts = _texts("generate", "texts", [inputs] if one else inputs)
        draws = options.get("num_beams") in (None, 1)
        how = _how({"do_sample": draws, "top_k": 0, "max_length": self.config["max_length"]}, options, seed)
        written = self._tasks.write(prompts, json.dumps(how), 1 if seed is None else _whole("generate", "seed", seed))
        out = _first_or_all(how, [[text.decode("utf-8", "replace") for text in each] for each in written])
        return out[0] if one else out

    def forward(self, *args: Any, **options: Any) -> NoReturn:
        """Refused: of Hugging Face's folders."""
        raise NotImplementedError(f"forward: {self.folder} is a {self._said_as()}; expected a Hugging Face folder; a call with text runs this one")

    def _save(self, folder: str) -> None:
        self._copy(folder, "model.safetensors", "tokenizer.json")

    def _said_as(self) -> str:
        return f"{self._said['head']} of our own"

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (TaskModel, (self.folder, self.precision))
