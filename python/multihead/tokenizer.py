"""multihead.Tokenizer: text to token ids and back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import _core

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")


@dataclass(frozen=True)
class Encoding:
    """A text, or a pair of texts, as tokens: ids, their spelling, and for each which text it is of (0 or 1).

    offsets: of each token the characters [begin, end) of its text, as Python counts them; (0, 0) for tokens that were put
    around the texts.
    """

    ids: list[int]
    tokens: list[str]
    type_ids: list[int]
    offsets: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.ids)


def _whole(op: str, name: str, value: object, bits: int = 64) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{op}: {name} is a {type(value).__name__}; expected an integer")
    number = int(value.__index__())
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{op}: {name} is {number}; expected an integer of {bits} bits")
    return number


def _texts(op: str, name: str, values: Iterable[str]) -> list[str]:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{op}: {name} is a {type(values).__name__}; expected several texts")
    out = list(values)
    for n, each in enumerate(out):
        if not isinstance(each, str):
            raise TypeError(f"{op}: {name}[{n}] is a {type(each).__name__}; expected a str")
        each.encode()  # refuses a lone surrogate by name
    return out


class Tokenizer:
    """Text to token ids and back: a `tokenizer.json` of Hugging Face's format, or one trained here.

    It never changes: threads may share it. Pickling and copying work.

    >>> import multihead
    >>> t = multihead.Tokenizer.from_file("models/en-de/tokenizer.json")
    >>> t
    multihead.Tokenizer(vocab_size=8000)
    >>> t.encode("Where is the station?").tokens
    ['ĠWhere', 'Ġis', 'Ġthe', 'Ġstation', '?']
    >>> t.decode(t.encode("Where is the station?").ids)
    'Where is the station?'
    """

    __slots__ = ("_inner",)
    _inner: _core.Tokenizer

    def __init__(self) -> None:
        raise TypeError("Tokenizer: use Tokenizer.load, Tokenizer.from_file, Tokenizer.from_json or Tokenizer.train")

    @classmethod
    def _of(cls, inner: _core.Tokenizer) -> Tokenizer:
        made = cls.__new__(cls)
        made._inner = inner
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Reads a tokenizer.json, a SentencePiece model (.model, .spm), or the folder of a model that holds either, or
        the files of an older format (docs/tokenizers.md).

        >>> import multihead
        >>> multihead.Tokenizer.load("models/en-de").encode("Good morning!").offsets
        [(0, 1), (1, 4), (4, 12), (12, 13)]
        """
        return cls._of(_core.load_tokenizer(os.fspath(path)))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """The same by the name it has in Hugging Face's `tokenizers`."""
        return cls.load(path)

    @classmethod
    def from_json(cls, json: str) -> Tokenizer:
        """The same from the text of such a file."""
        return cls._of(_core.parse_tokenizer(json))

    @classmethod
    def train(
        cls,
        files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        vocab_size: int = 8000,
        *,
        columns: Sequence[int] = (),
        special_tokens: Sequence[str] = SPECIALS,
        prefix_space: bool = True,
        lowercase: bool = False,
        normalisation: str = "none",
        min_frequency: int = 2,
    ) -> Tokenizer:
        """Learns a byte-level BPE from text files (plain, gzip or xz), one text per line; tabs separate texts.

        columns: which of them to learn from, counted from 1 (all). normalisation: none, nfc or nfkc. Lines that are not
        UTF-8 are skipped with a warning. The vocabulary stays smaller where no pair is left that occurs min_frequency times.

        >>> import multihead, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "text"
        >>> _ = file.write_text("low lower lowest\\n" * 10)
        >>> multihead.Tokenizer.train(file, vocab_size=264).encode("lower").tokens
        ['Ġlowe', 'r']
        """
        paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        texts, skipped = _core.read_texts([os.fspath(path) for path in paths], list(columns))
        for sentence in skipped:
            warnings.warn(sentence, stacklevel=2)
        return cls.train_from_iterator(
            texts,
            vocab_size,
            special_tokens=special_tokens,
            prefix_space=prefix_space,
            lowercase=lowercase,
            normalisation=normalisation,
            min_frequency=min_frequency,
        )

    @classmethod
    def train_from_iterator(
        cls,
        texts: Iterable[str],
        vocab_size: int = 8000,
        *,
        special_tokens: Sequence[str] = SPECIALS,
        prefix_space: bool = True,
        lowercase: bool = False,
        normalisation: str = "none",
        min_frequency: int = 2,
    ) -> Tokenizer:
        """The same from texts in memory."""
        op = "Tokenizer.train"
        made = _core.train_tokenizer(
            _texts(op, "texts", texts),
            _whole(op, "vocab_size", vocab_size, 32),
            _texts(op, "special_tokens", special_tokens),
            bool(prefix_space),
            bool(lowercase),
            normalisation,
            _whole(op, "min_frequency", min_frequency),
        )
        return cls._of(made)

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
        find_special_tokens: bool = True,
        max_length: int = 0,
    ) -> Encoding:
        """One text, or two.

        add_special_tokens: those that the file's post-processor puts around the text (a byte-level BPE has none).
        find_special_tokens: "[SEP]" in the text becomes the special token; False: text is only text. max_length: cuts the
        longer text first until all fits; 0 is no limit.
        """
        return self.encode_batch(
            [text],
            None if pair is None else [pair],
            add_special_tokens=add_special_tokens,
            find_special_tokens=find_special_tokens,
            max_length=max_length,
        )[0]

    def encode_batch(
        self,
        texts: Iterable[str],
        pairs: Iterable[str] | None = None,
        *,
        add_special_tokens: bool = True,
        find_special_tokens: bool = True,
        max_length: int = 0,
    ) -> list[Encoding]:
        """Many texts, on all threads; text n goes with pairs[n] where pairs are given."""
        first = _texts("Tokenizer.encode", "texts", texts)
        second = None if pairs is None else _texts("Tokenizer.encode", "pairs", pairs)
        if second is not None and len(second) != len(first):
            raise ValueError(f"Tokenizer.encode: {len(first)} texts and {len(second)} pairs; expected the same number")
        longest = _whole("Tokenizer.encode", "max_length", max_length)
        encoded = self._inner.encode(first, second, bool(add_special_tokens), bool(find_special_tokens), longest)
        return [Encoding(ids, self._inner.tokens(ids), types, offsets) for ids, types, offsets in encoded]

    def decode(self, ids: Iterable[int]) -> str:
        """Ids to text; special tokens are skipped. Bytes that are not whole UTF-8 become U+FFFD."""
        checked = [_whole("Tokenizer.decode", "an id", each, 32) for each in ids]
        return self._inner.decode(checked).decode("utf-8", "replace")

    def decode_batch(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """decode of each."""
        return [self.decode(ids) for ids in rows]

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, special tokens among them."""
        return self._inner.size()

    def __len__(self) -> int:
        return self._inner.size()

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, spelled as in the file ("Ġ" is a space); None where there is none."""
        return self._inner.id(token)

    def id_to_token(self, id: int) -> str | None:
        """The spelling of an id; None where there is none."""
        number = _whole("Tokenizer.id_to_token", "id", id)
        return self._inner.tokens([number])[0] if 0 <= number < self._inner.size() else None

    def is_special(self, id: int) -> bool:
        """Whether the id is of a special token. Raises ValueError where there is no such id."""
        return self._inner.is_special(_whole("Tokenizer.is_special", "id", id, 32))

    def to_json(self) -> str:
        """The text of its tokenizer.json."""
        return self._inner.json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a tokenizer.json: whole, or not at all."""
        self._inner.save(os.fspath(path))

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (type(self).from_json, (self.to_json(),))

    def __repr__(self) -> str:
        return f"multihead.Tokenizer(vocab_size={self.vocab_size})"
