"""What a Hugging Face model says of a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Classification:
    """A text's most probable label, its probability, and that of every label; cut where the text was too long."""

    label: str
    score: float
    scores: dict[str, float]
    cut: bool


@dataclass(frozen=True)
class Entity:
    """What a tagger found: characters [begin, end) of the text, and how probable their label is."""

    label: str
    text: str
    begin: int
    end: int
    score: float


@dataclass(frozen=True)
class Tagging:
    """A text's words with the tag of each, and its entities; cut where the text was too long and the rest is "O"."""

    words: list[str]
    tags: list[str]
    entities: list[Entity]
    cut: bool


def _entities(text: str, found: Iterable[tuple[str, int, int, float]]) -> list[Entity]:
    raw, out = text.encode(), []
    for label, begin, end, score in found:
        before, inside = len(raw[:begin].decode()), raw[begin:end].decode()
        out.append(Entity(label, inside, before, before + len(inside), score))
    return out


def _many(texts: object) -> tuple[list[Any], bool]:
    """Texts, or pairs of them, and whether one alone was given."""
    one = isinstance(texts, str) or (isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(t, str) for t in texts))
    if not one and not isinstance(texts, Iterable):
        raise TypeError(f"model: texts is a {type(texts).__name__}; expected a str, or an iterable of them")
    return ([texts] if one else list(texts)), one  # type: ignore[call-overload]


def _joined(text: object) -> object:
    if not isinstance(text, tuple):
        return text
    if len(text) != 2 or not all(isinstance(part, str) for part in text) or "\t" in text[0]:
        raise ValueError("model: a pair is a tuple of two str, the first without a tab")
    return "\t".join(text)
