"""multihead.Model: translation models in folders, as `multihead translate` uses them."""

from __future__ import annotations

import difflib
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from . import _core
from .page import AttentionPage, Group, _page
from .tokenizer import Tokenizer, _whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack


class TranslateOptions(TypedDict, total=False):
    """What translate() and translations() may be told besides the lines and the beam."""

    length_penalty: str  # power[:ALPHA] or gnmt[:ALPHA]: what log p is divided by (power:1)
    patience: float  # search on until patience times beam hypotheses are finished (1)
    max_length: int  # most tokens of a translation; 0: 2 per source token + 12, and the model's
    min_length: int  # fewest tokens of a translation (0)
    repetition_penalty: float  # above 1: words already written become less likely (1)
    no_repeat: int  # no N tokens in a row occur twice (0: they may)
    batch: int  # tokens translated together (2048); changes no result
    whole: bool  # a line is one sentence, whatever it holds (False)
    sample: bool  # draw words at random instead of searching (False); the keys below say how
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int


_DEFAULTS: dict[str, Any] = {
    "length_penalty": "power:1",
    "patience": 1.0,
    "max_length": 0,
    "min_length": 0,
    "repetition_penalty": 1.0,
    "no_repeat": 0,
    "batch": 2048,
    "whole": False,
    "sample": False,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "seed": 1,
}
_OF_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "seed")
_OF_SEARCH = ("length_penalty", "patience")
# Control-C is heard between rounds; the first is small, as the program's.
_FIRST_ROUND, _LARGEST_ROUND = 256, 4096


@dataclass(frozen=True)
class Sentence:
    """A sentence of a line as one candidate translates it; `space` is the white space before it."""

    source: str
    space: str
    text: str
    score: float
    ids: list[int]
    token_scores: list[float]
    ended: bool


@dataclass(frozen=True)
class Candidate:
    """One way to translate a line: its text, score, tokens with their log p, and its sentences one by one."""

    text: str
    score: float
    ids: list[int]
    token_scores: list[float]
    ended: bool
    sentences: list[Sentence]


@dataclass(frozen=True)
class Translation:
    """A line translated: candidates, best first; cut where a sentence was too long and only its beginning was read."""

    candidates: list[Candidate]
    source_tokens: int
    cut: bool

    @property
    def text(self) -> str:
        return self.candidates[0].text

    @property
    def score(self) -> float:
        return self.candidates[0].score


_ROLLOUT = (
    "How much of each token of the input is in a token after a layer: the layers' mean attention multiplied, half of it "
    "for the residual stream (Abnar and Zuidema, 2020)."
)


@dataclass(frozen=True, eq=False)
class Attention:
    """What a model looked at while it read `source` and wrote `target` (tokens as text, </s> last).

    Float32 arrays (layers, heads, queries, keys); rows sum to 1. Row t of decoder and cross is that of the step that
    wrote target[t].
    """

    source: list[str]
    target: list[str]
    encoder: npt.NDArray[np.float32]
    decoder: npt.NDArray[np.float32]
    cross: npt.NDArray[np.float32]
    line: str
    text: str
    model: str

    # Rollout (Abnar and Zuidema, 2020), float32 (layers, tokens, tokens): how much of each token of the input is in
    # token i after each layer. Those of the decoder are of <s> and the target without its </s>.
    encoder_rollout: npt.NDArray[np.float32]
    decoder_rollout: npt.NDArray[np.float32]
    # Of each token the number of its word, -1: none.
    source_words: list[int]
    target_words: list[int]

    def page(self, heads: str = "") -> AttentionPage:
        """The page of `multihead show`. heads: those of a long text that are stored whole, "5.3,7.*", from 1."""
        read = ["<s>", *self.target[:-1]], [-1, *self.target_words[:-1]]
        texts = [("source", self.source, self.source_words), ("read", *read), ("written", self.target, self.target_words)]
        groups: list[Group] = [
            ("Cross-attention", "What the decoder read of the source when it wrote a token.", 2, 0, "head", list(self.cross)),
            ("Encoder", "Self-attention: every token reads the whole text.", 0, 0, "head", list(self.encoder)),
            ("Decoder", "Self-attention: every token reads itself and the tokens before it.", 1, 1, "head", list(self.decoder)),
            ("Rollout", _ROLLOUT, 0, 0, "after layer", [self.encoder_rollout]),
            ("Decoder rollout", _ROLLOUT, 1, 1, "after layer", [self.decoder_rollout]),
        ]
        title = f"{self.line} → {self.text}"
        return _page(title, self.model, texts, [group for group in groups if len(group[5]) and group[5][0].size], heads)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes page(): one HTML file that needs no network."""
        self.page().save(path)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def __repr__(self) -> str:
        layers, heads, targets, sources = self.cross.shape
        return f"multihead.Attention({layers} decoder layers, {heads} heads, {sources} source and {targets} target tokens)"


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"translate: {name} is a {type(value).__name__}; expected a number")
    return float(value.__float__())


def _value(name: str, value: object) -> Any:
    kind = type(_DEFAULTS[name])
    if kind is int:
        return _whole("translate", name, value)
    if kind is float:
        return _number(name, value)
    if not isinstance(value, kind):
        raise TypeError(f"translate: {name} is a {type(value).__name__}; expected a {kind.__name__}")
    return value


def _penalty(text: str) -> tuple[bool, float]:
    kind, _, alpha = text.partition(":")
    try:
        if kind in ("power", "gnmt"):
            return kind == "gnmt", float(alpha) if ":" in text else {"power": 1.0, "gnmt": 0.6}[kind]
    except ValueError:
        pass
    raise ValueError(f"translate: length_penalty is '{text}'; expected power[:ALPHA] or gnmt[:ALPHA]")


def _settled(beam: object, n_best: object, given: dict[str, object]) -> dict[str, Any]:
    for name in given:
        if name not in _DEFAULTS:
            near = difflib.get_close_matches(name, [*_DEFAULTS, "beam", "n_best"], 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(_DEFAULTS)}"
            raise TypeError(f"translate: there is no option {name}; {hint}")
    out = {name: _value(name, given.get(name, default)) for name, default in _DEFAULTS.items()}
    out["beam"] = _whole("translate", "beam", 4 if beam is None else beam)
    out["n_best"] = _whole("translate", "n_best", n_best)
    wrong = [name for name in (_OF_SEARCH if out["sample"] else _OF_SAMPLING) if name in given]
    if out["sample"] and beam is not None:
        wrong.append("beam")
    if wrong:
        side = "goes without" if out["sample"] else "goes with"
        raise ValueError(f"translate: {wrong[0]} {side} sample=True")
    if out["seed"] < 0:
        raise ValueError(f"translate: seed is {out['seed']}; expected 0 or more")
    out["gnmt"], out["alpha"] = _penalty(out["length_penalty"])
    return out


def _written(fields: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(("text", "score", "ids", "token_scores", "ended"), fields))


def _translation(fields: Sequence[Any]) -> Translation:
    candidates = [
        Candidate(**_written(own), sentences=[Sentence(source, space, **_written(each)) for source, space, each in sentences])
        for own, sentences in fields[0]
    ]
    return Translation(candidates, fields[1], fields[2])


class Model:
    """A translation model. Made by multihead.load; threads may share it.

    >>> import multihead
    >>> model = multihead.load("models/en-de")
    >>> model
    multihead.Model('models/en-de': width 256, 4 heads, 3 + 3 layers, 8000 tokens, f32)
    >>> model.translate("Where is the station?")
    'Wo ist der Bahnhof?'
    """

    def __init__(self, folder: str | os.PathLike[str], precision: Literal["f32", "bf16"] = "f32") -> None:
        if precision not in ("f32", "bf16"):
            raise ValueError(f"load: precision is {precision!r}; expected 'f32' or 'bf16'")
        self.folder = os.fspath(folder)
        self.precision = precision
        self._inner = _core.Translator(self.folder, precision == "bf16")

    @property
    def config(self) -> dict[str, Any]:
        """The model's sizes and choices, by the keys of a configuration's [model] section."""
        said: dict[str, Any] = json.loads(self._inner.metadata()["config"])
        return said

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of both languages."""
        return Tokenizer._of(self._inner.tokenizer())

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, lines: str, beam: int | None = None, **options: Unpack[TranslateOptions]
    ) -> str: ...
    @overload
    def translate(self, lines: Iterable[str], beam: int | None = None, **options: Unpack[TranslateOptions]) -> list[str]: ...
    def translate(
        self, lines: str | Iterable[str], beam: int | None = None, **options: Unpack[TranslateOptions]
    ) -> str | list[str]:
        """Translates a line (a str, to a str), or many of any iterable (to a list): what `multihead translate` prints.

        beam: hypotheses kept while searching (4); 1 is greedy and fastest. The other options are the program's, by
        keyword: length_penalty, patience, max_length, min_length, repetition_penalty, no_repeat, batch, whole, and with
        sample=True temperature, top_k, top_p, min_p, seed. Lines are sorted by length and translated in batches, without
        the GIL; the result is the same for any batch and number of threads.

        >>> import multihead
        >>> multihead.load("models/en-de").translate(["Good morning!", "The soup is too salty for me."], beam=1)
        ['Guten Morgen!', 'Die Suppe ist zu salzig für mich.']
        """
        if isinstance(lines, str):
            return next(self._rounds([lines], beam, 1, options)).text
        return [each.text for each in self._rounds(lines, beam, 1, options)]

    @overload
    def translations(  # type: ignore[overload-overlap]
        self, lines: str, beam: int | None = None, *, n_best: int = 1, **options: Unpack[TranslateOptions]
    ) -> Translation: ...
    @overload
    def translations(
        self, lines: Iterable[str], beam: int | None = None, *, n_best: int = 1, **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...
    def translations(
        self, lines: str | Iterable[str], beam: int | None = None, *, n_best: int = 1, **options: Unpack[TranslateOptions]
    ) -> Translation | list[Translation]:
        """translate() with all there is to know: the n_best candidates, scores, tokens, sentences.

        >>> import multihead
        >>> best = multihead.load("models/en-de").translations("Thank you.", n_best=2)
        >>> [c.text for c in best.candidates], best.score > best.candidates[1].score
        (['Danke.', 'Danke!'], True)
        """
        if isinstance(lines, str):
            return next(self._rounds([lines], beam, n_best, options))
        return list(self._rounds(lines, beam, n_best, options))

    def _rounds(self, lines: Iterable[str], beam: object, n_best: object, options: Any) -> Iterator[Translation]:
        if isinstance(lines, bytes):
            raise TypeError("translate: lines is a bytes; expected a str, or an iterable of them")
        settled = _settled(beam, n_best, options)
        rest, size, done = iter(lines), _FIRST_ROUND, 0
        while texts := list(itertools.islice(rest, size)):
            for n, each in enumerate(texts):
                if not isinstance(each, str):
                    raise TypeError(f"translate: line {done + n + 1} is a {type(each).__name__}; expected a str")
                each.encode()  # refuses a lone surrogate by name
            settled["first_line"] = done
            yield from map(_translation, self._inner.translate(texts, settled))
            done, size = done + len(texts), min(4 * size, _LARGEST_ROUND)

    def align(self, candidate: Candidate, layer: int | None = None) -> list[tuple[int, int]]:
        """Pairs (source word, target word), from 0: for each target word the source word with the most attention.

        layer: of the decoder, from 0; by default the last but one, as `multihead translate --alignments`.

        >>> import multihead
        >>> model = multihead.load("models/en-de")
        >>> model.align(model.translations("Thank you.").candidates[0])
        [(0, 0)]
        """
        return self._inner.align([(each.source, each.ids) for each in candidate.sentences], self._layer(layer))

    def _layer(self, layer: int | None) -> int:
        return max(0, self._inner.decoder_layers() - 2) if layer is None else _whole("align", "layer", layer)

    def attention(self, line: str, target: str | Sentence | None = None) -> Attention:
        """Every attention weight of the model while it translates a line, read as one sentence.

        target: what it writes: a text, a Sentence of translations(), or by default its own translation (beam 4). Where a
        line holds several sentences, give the source and the Sentence of each.

        >>> import multihead
        >>> seen = multihead.load("models/en-de").attention("Good morning!")
        >>> seen.source, seen.target
        (['G', 'ood', 'morning', '!', '</s>'], ['G', 'uten', 'Morgen', '!', '</s>'])
        >>> seen.encoder.shape, seen.decoder.shape, seen.cross.shape
        ((3, 4, 5, 5), (3, 4, 5, 5), (3, 4, 5, 5))
        """
        if not isinstance(line, str):
            raise TypeError(f"attention: line is a {type(line).__name__}; expected a str")
        if target is None:
            sentences = self.translations(line, whole=True).candidates[0].sentences
            if not sentences:
                raise ValueError("attention: the line holds white space alone; expected a sentence")
            target = sentences[0]
        if not isinstance(target, (str, Sentence)):
            raise TypeError(f"attention: target is a {type(target).__name__}; expected a str or a Sentence")
        ids = self._ids(target) if isinstance(target, str) else target.ids
        text = target if isinstance(target, str) else target.text
        (source, _, written), arrays = self._inner.record(line, ids)
        encoder, decoder, cross, encoder_rollout, decoder_rollout = arrays
        return Attention(
            source=source[1], target=written[1], encoder=encoder, decoder=decoder, cross=cross, line=line, text=text,
            model=self.folder, encoder_rollout=encoder_rollout, decoder_rollout=decoder_rollout,
            source_words=source[2], target_words=written[2],
        )

    def record(self, line: Any, target: Any = None) -> Any:
        """attention() under the name of what it gives: a recording, which a notebook shows as a page.

        >>> import multihead
        >>> recording = multihead.load("models/en-de").record("Good morning!")
        >>> recording.save("/tmp/page.html")
        """
        return self.attention(line, target)

    def __call__(self, texts: Any, **options: Any) -> Any:
        """What the folder is for: translate()."""
        return self.translate(texts, **options)

    def forward(
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        *,
        decoder_input_ids: Any = None,
        decoder_attention_mask: Any = None,
        pixel_values: Any = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> dict[str, Any]:
        """One pass of a Hugging Face folder's model (multihead.Pretrained); a translation model of our own has none."""
        raise NotImplementedError(f"forward: {self.folder} is a translation model of our own; expected a Hugging Face folder; translate() runs it")

    def generate(self, inputs: Any, attention_mask: Any = None, *, seed: int | None = None, **options: Any) -> Any:
        """What a Hugging Face folder's model writes (multihead.Pretrained); a translation model of our own has none."""
        raise NotImplementedError(f"generate: {self.folder} is a translation model of our own; expected a Hugging Face folder; translate() runs it")

    def _save(self, folder: str) -> None:
        self._copy(folder, "model.safetensors", "tokenizer.json")

    def _copy(self, folder: str, *names: str) -> None:
        for name in names:
            source, target = os.path.join(self.folder, name), os.path.join(folder, name)
            if os.path.exists(target) and os.path.samefile(source, target):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            part = f"{target}.part{os.getpid()}"
            try:
                shutil.copyfile(source, part)
                os.replace(part, target)
            finally:
                if os.path.exists(part):
                    os.remove(part)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False, find_special_tokens=False).ids

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (Model, (self.folder, self.precision))

    def __repr__(self) -> str:
        c = self.config
        sizes = f"width {c['width']}, {c['heads']} heads, {c['encoder_layers']} + {c['decoder_layers']} layers"
        return f"multihead.Model({self.folder!r}: {sizes}, {c['vocabulary']} tokens, {self.precision})"
