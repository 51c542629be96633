"""multihead.show and what a recording is shown as: one HTML page that needs nothing else."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core

# name, about, which text asks, which is read, what a picture is called, the layers (heads, queries, keys)
Group = tuple[str, str, int, int, str, list[Any]]


class AttentionPage:
    """A page that shows attention. A notebook shows it in place; `save` writes it for a browser."""

    def __init__(self, text: str) -> None:
        self.html = text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page: one file that needs no network."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        # A frame without rights but to run the page's own script: it sees nothing of the notebook.
        said = html.escape(self.html)
        frame = 'style="width:100%;height:760px;border:0" sandbox="allow-scripts allow-downloads" title="attention"'
        return f'<iframe {frame} srcdoc="{said}"></iframe>'

    def __repr__(self) -> str:
        return f"multihead.AttentionPage({len(self.html)} characters of HTML)"


def _plain(array: Any) -> Any:
    """An array of any library as float32 of NumPy: tensors of PyTorch leave their graph, their device and bfloat16."""
    for method in ("detach", "cpu", "float"):
        array = getattr(array, method)() if hasattr(array, method) else array
    return np.ascontiguousarray(array, dtype=np.float32)


def _layers(attentions: Any) -> list[Any]:
    arrays = [_plain(each) for each in attentions]
    out = []
    for n, array in enumerate(arrays):
        if array.ndim == 4 and array.shape[0] != 1:
            raise ValueError(f"show: layer {n + 1} has a batch of {array.shape[0]} sequences; expected one, as in attentions[n][:1]")
        if array.ndim not in (3, 4):
            raise ValueError(f"show: layer {n + 1} has the shape {array.shape}; expected (heads, queries, keys)")
        out.append(array[0] if array.ndim == 4 else array)
    if not out:
        raise ValueError("show: there is no layer; expected one array for each, (heads, queries, keys)")
    return out


def _text(name: str, tokens: Sequence[str], words: Sequence[int | None] | None) -> tuple[str, list[str], list[int]]:
    spelled = [str(token).encode("utf-8", "replace").decode("utf-8") for token in tokens]
    numbers = list(range(len(spelled))) if words is None else [-1 if word is None else int(word) for word in words]
    if len(numbers) != len(spelled):
        raise ValueError(f"show: {len(numbers)} words for {len(spelled)} tokens; expected the word of each token")
    return name, spelled, numbers


def _page(title: str, subtitle: str, texts: list[Any], groups: list[Group], heads: str) -> AttentionPage:
    for name, _, queries, keys, _, layers in groups:
        wanted = (len(texts[queries][1]), len(texts[keys][1]))
        for n, layer in enumerate(layers):
            if layer.shape[1:] != wanted:
                raise ValueError(f"show: layer {n + 1} of {name} has the shape {layer.shape}; the tokens want (heads, {wanted[0]}, {wanted[1]})")
    return AttentionPage(_core.attention_page(title, subtitle, texts, groups, heads))


def show(
    attentions: Any,
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    words: Sequence[int | None] | None = None,
    key_words: Sequence[int | None] | None = None,
    title: str = "Attention",
    heads: str = "",
) -> AttentionPage:
    """A page of attention weights from any library.

    attentions: an array (heads, T, T) for each layer, or (1, heads, T, T) as transformers gives them with
    `output_attentions=True`; arrays of NumPy or PyTorch. tokens: what the rows are; keys: what the columns are, where
    they are others (cross-attention). words: of each token the number of its word (tokenizers' `word_ids()`), so that
    sub-words can be joined. heads: which heads of a long text are stored whole, "5.3,7.*", counted from 1.

    >>> import multihead, numpy as np
    >>> page = multihead.show([np.full((2, 3, 3), 1 / 3)], ["a", "b", "c"])
    >>> page.save("/tmp/page.html")
    """
    texts = [_text("text", tokens, words)]
    layers = _layers(attentions)
    if keys is not None:
        texts.append(_text("keys", keys, key_words))
    about = "What every token reads." if keys is None else "What every row reads of the columns."
    group: Group = ("Attention", about, 0, 0 if keys is None else 1, "head", layers)
    return _page(title, "", texts, [group], heads)
