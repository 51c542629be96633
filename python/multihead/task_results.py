"""What a model says of a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


@dataclass(frozen=True)
class Filling:
    """A token for a gap, as text, with its number, its probability, and the text with it; other gaps stay."""

    token: str
    id: int
    score: float
    text: str


@dataclass(frozen=True)
class Gap:
    """Where a mask stands, characters [begin, end) of the text, and what fits there, the likeliest first."""

    begin: int
    end: int
    fillings: list[Filling]


@dataclass(frozen=True)
class Filled:
    """A text's gaps in their order; cut where the text was too long, and gaps past its end are not among them."""

    gaps: list[Gap]
    cut: bool


@dataclass(frozen=True)
class Answer:
    """The part of a context that answers a question: characters [begin, end) of it; empty text: there is none."""

    text: str
    begin: int
    end: int
    score: float


def _characters(raw: bytes, begin: int, end: int) -> tuple[int, int]:
    """Bytes [begin, end) of the text as characters."""
    before = len(raw[:begin].decode())
    return before, before + len(raw[begin:end].decode())


def _entities(text: str, found: Iterable[tuple[str, int, int, float]]) -> list[Entity]:
    raw, out = text.encode(), []
    for label, first, last, score in found:
        begin, end = _characters(raw, first, last)
        out.append(Entity(label, text[begin:end], begin, end, score))
    return out


def _filled(text: str, found: Iterable[tuple[int, int, Sequence[tuple[str, int, float, str]]]], cut: bool) -> Filled:
    raw = text.encode()
    return Filled([Gap(*_characters(raw, first, last), [Filling(*one) for one in each]) for first, last, each in found], cut)


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


def _parted(text: object) -> tuple[str, str]:
    """A question and its context: a tuple, or a str with a tab."""
    parts = tuple(text.split("\t", 1)) if isinstance(text, str) else text
    if not isinstance(parts, tuple) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise ValueError("model: a question stands alone; expected it with its context, as a tuple of two str or with a tab between them")
    return parts[0], parts[1]
