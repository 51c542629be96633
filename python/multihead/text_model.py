"""multihead.TextModel: models that are no translators of our own, called with text for what their folder is for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from . import _core
from .model import Model
from .recording import Recording, _record
from .task_results import Answer, Classification, Tagging, _characters, _entities, _filled, _joined, _many, _parted
from .tokenizer import Tokenizer, _texts, _whole

# What each verb takes by keyword, with its default; generate() has its own.
_OPTIONS: dict[str, dict[str, Any]] = {
    "classify": {},
    "tag": {},
    "embed": {"prompt": None, "prompt_name": None},
    "fill": {"k": 5},
    "answer": {"window": 384, "stride": 128, "longest": 15, "no_answer": False},
}


class TextModel(Model):
    """A classifier, tagger, embedder, … : what Pretrained and TaskModel have in common. Threads may share it."""

    def _prepare(self, verb: str) -> None:
        self._verb = verb
        self._tasks = _core.Tasks(self.folder, self.precision == "bf16")
        self._tokenizer: Tokenizer | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """The folder's tokenizer. Raises OSError where it holds none."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer.load(self.folder)
        return self._tokenizer

    @property
    def labels(self) -> list[str]:
        """Of a classifier or tagger, by number."""
        raise NotImplementedError

    def __call__(self, texts: Any, **options: Any) -> Any:
        """What the folder is for, of a text (to one result) or many (to a list).

        A text classifier gives Classification, a tagger Tagging, an embedder a vector (of many an array with a row for
        each), a masked language model Filled, a question answerer Answer, a model that writes text what generate() gives.
        A pair of texts, and a question with its context, is a tuple, or a str with a tab. Options are those of the
        program's verb: of an embedder prompt and prompt_name, of a masked language model k, of a question answerer window,
        stride, longest and no_answer.
        """
        if self._verb in ("generate", "translate", "summarise"):
            return self.generate(texts, **options)
        given, one = _many(texts)
        out = self._calls()[self._verb](given, self._settled(options))
        return out[0] if one else out

    def _calls(self) -> dict[str, Callable[[list[Any], dict[str, Any]], Any]]:
        return {"classify": self._classify, "tag": self._tag, "embed": self._embed, "fill": self._fill, "answer": self._answer}

    def _settled(self, options: dict[str, Any]) -> dict[str, Any]:
        known = _OPTIONS[self._verb]
        for name, value in options.items():
            if name not in known:
                has = f"has {', '.join(known)}" if known else "has none"
                raise TypeError(f"model: there is no option {name}; a {self._said_as()} {has}")
            if isinstance(known[name], bool):
                if not isinstance(value, bool):
                    raise TypeError(f"model: {name} is a {type(value).__name__}; expected a bool")
            elif isinstance(known[name], int):
                _whole("model", name, value)
            elif not isinstance(value, (str, type(None))):
                raise TypeError(f"model: {name} is a {type(value).__name__}; expected a str")
        return known | options

    def _classify(self, given: list[Any], _: dict[str, Any]) -> list[Classification]:
        labels = self.labels
        found = self._tasks.classify(_texts("model", "texts", map(_joined, given)))  # type: ignore[arg-type]
        return [Classification(label, score, dict(zip(labels, scores)), cut) for label, score, scores, cut in found]

    def _tag(self, given: list[Any], _: dict[str, Any]) -> list[Tagging]:
        found = self._tasks.tag(_texts("model", "texts", given))
        return [Tagging(words, tags, _entities(text, spans), cut) for text, (words, tags, spans, cut) in zip(given, found)]

    def _embed(self, given: list[Any], options: dict[str, Any]) -> Any:
        if options["prompt"] is not None and options["prompt_name"] is not None:
            raise ValueError("model: prompt and prompt_name are both given; expected one of them")
        vectors, cut = self._tasks.embed(_texts("model", "texts", given), options["prompt"], options["prompt_name"])
        for n in cut:
            warnings.warn(f"model: texts[{n}] is too long for the model; only its beginning is read", stacklevel=4)
        return vectors

    def _fill(self, given: list[Any], options: dict[str, Any]) -> Any:
        found = self._tasks.fill(_texts("model", "texts", given), options["k"])
        return [_filled(text, gaps, cut) for text, (gaps, cut) in zip(given, found)]

    def _answer(self, given: list[Any], options: dict[str, Any]) -> list[Answer]:
        asked = [_parted(each) for each in given]
        for each in zip(*asked):
            _texts("model", "texts", each)
        how = (options["window"], options["stride"], options["longest"], options["no_answer"])
        found = self._tasks.answer(asked, how)
        return [
            Answer(text, *_characters(context.encode(), begin, end), score) for (_, context), (text, begin, end, score) in zip(asked, found)
        ]

    def record(self, text: Any, written: str | None = None) -> Recording:
        """What the model looks at while it reads a text, or a tuple of two: a Recording, which a notebook shows as a page.

        written: what a decoder behind an encoder has written; None: what the model itself writes.
        """
        if written is not None:
            raise ValueError(f"record: written is given; a {self._said_as()} has no decoder behind an encoder")
        core, title = _record(self._tasks.record, text)
        return Recording(core, title, self.folder)

    def _said_as(self) -> str:
        """What the model is, in words."""
        raise NotImplementedError

    def _refuse(self, what: str) -> NoReturn:
        raise NotImplementedError(
            f"{what}: {self.folder} is a {self._said_as()}; expected a translation model that `multihead train` left; "
            "a call with text runs this one"
        )

    def translations(self, *args: Any, **options: Any) -> NoReturn:
        """Refused: of our own translation models."""
        self._refuse("translations")

    def translate(self, *args: Any, **options: Any) -> NoReturn:
        """Refused: of our own translation models."""
        self._refuse("translate")

    def align(self, *args: Any, **options: Any) -> NoReturn:
        """Refused: of our own translation models."""
        self._refuse("align")

    def attention(self, *args: Any, **options: Any) -> NoReturn:
        """Refused: of our own translation models; record() gives what this one looks at."""
        self._refuse("attention")

    def __repr__(self) -> str:
        return f"multihead.{type(self).__name__}({self.folder!r}: {self._said_as()}, {self.precision})"
