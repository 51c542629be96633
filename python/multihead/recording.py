"""multihead.Recording: what a model's attention looked at in one pass, made when asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from .page import AttentionPage
from .tokenizer import _whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]


class RecordedLayer:
    """A layer's attention: every token of `rows` reads those of `columns`.

    kind: "encoder" (all tokens), "decoder" (a token and those before it), "cross"; number: among those of its kind, from 0.
    """

    def __init__(self, core: _core.Recording, n: int, fields: tuple[str, int, int, int, int], texts: dict[str, list[str]]) -> None:
        self._core, self._n = core, n
        self.kind, self.number, self.heads, queries, keys = fields
        alone = next(iter(texts.values()))
        self.rows = texts.get("written" if self.kind == "cross" else "read" if self.kind == "decoder" else "source", alone)
        self.columns = self.rows if self.kind != "cross" else texts["source"]
        assert len(self.rows) == queries and len(self.columns) == keys

    def weights(self, heads: Sequence[int] | None = None, rows: Sequence[int] | None = None) -> Floats:
        """Exact weights, float32 (heads, rows, columns), of the heads and rows chosen, from 0; None: all."""
        found: Floats = self._core.weights(self._n, _chosen("heads", heads, self.heads), _chosen("rows", rows, len(self.rows)))
        return found

    def statistics(self, top: int = 1) -> _core.Statistics:
        """entropy and distance (heads, rows), received (heads, columns), top_keys and top_weights (heads, rows, top)."""
        return self._core.statistics(self._n, _whole("statistics", "top", top, 32))

    def __repr__(self) -> str:
        return f"multihead.RecordedLayer({self.kind} {self.number}: {self.heads} heads, {len(self.rows)} × {len(self.columns)} tokens)"


class Recording:
    """What a model looked at while it read a text. It keeps queries and keys; weights are made when asked for.

    A notebook shows its page. texts: the tokens by name, "text", or of a model with encoder and decoder "source", "read"
    (what the decoder read) and "written" (a token later). cut: the text was too long, and this is its beginning.
    """

    def __init__(self, core: _core.Recording, title: str, model: str) -> None:
        self._core, self._title, self._model = core, title, model
        self.texts: dict[str, list[str]] = {name: tokens for name, tokens, _ in core.texts()}
        self.words: dict[str, list[int]] = {name: words for name, _, words in core.texts()}
        self.layers = [RecordedLayer(core, n, fields, self.texts) for n, fields in enumerate(core.layers())]
        self.cut = core.cut()

    @property
    def tokens(self) -> list[str]:
        """Of the text that was read."""
        return next(iter(self.texts.values()))

    def rollout(self, kind: Literal["encoder", "decoder"] | None = None) -> Floats:
        """How much of each token of the input is in a token after each layer (Abnar and Zuidema, 2020).

        Float32 (layers, tokens, tokens) of the encoder's or decoder's self-attention; None: of the first there is.
        """
        kinds = {layer.kind for layer in self.layers}
        wanted = ("encoder" if "encoder" in kinds else "decoder") if kind is None else kind
        if wanted not in ("encoder", "decoder") or wanted not in kinds:
            raise ValueError(f"rollout: kind is {kind!r}; expected one of {', '.join(sorted(kinds - {'cross'}))}")
        found: Floats = self._core.rollout(wanted == "decoder")
        return found

    def page(self, heads: str = "") -> AttentionPage:
        """The page of `multihead show`. heads: those of a long text that are stored whole, "5.3,7.*", from 1."""
        return AttentionPage(self._core.page(self._title, self._model, heads))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes page(): one HTML file that needs no network."""
        self.page().save(path)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(tokens)} tokens {name}" if name != "text" else f"{len(tokens)} tokens" for name, tokens in self.texts.items())
        return f"multihead.Recording({len(self.layers)} layers, {counts})"


def _chosen(what: str, numbers: Sequence[int] | None, count: int) -> list[int] | None:
    if numbers is None:
        return None
    if isinstance(numbers, str) or not hasattr(numbers, "__iter__"):
        raise TypeError(f"weights: {what} is a {type(numbers).__name__}; expected a list of integers, or None for all")
    out = [_whole("weights", f"one of {what}", each, 32) for each in numbers]
    for each in out:
        if not 0 <= each < count:
            raise ValueError(f"weights: {what} names {each}; expected numbers from 0 to {count - 1}")
    return out


def _record(record: Any, text: Any) -> tuple[_core.Recording, str]:
    """record(text, pair) of a text or a tuple of two, and its title."""
    pair = text if isinstance(text, tuple) else (text, None)
    if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], (str, type(None))):
        raise TypeError("record: text is neither a str nor a tuple of two")
    for each in pair:
        (each or "").encode()  # refuses a lone surrogate by name
    return record(*pair), " | ".join(each for each in pair if each is not None)
