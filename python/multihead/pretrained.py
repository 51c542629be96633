"""multihead.Pretrained: Hugging Face's folders run as they are."""

from __future__ import annotations

import difflib
import json
import os
import warnings
from typing import Any, Literal, NoReturn

from . import _core
from .model import Model
from .padding import Layout, padded_weights, sequences
from .task_results import Classification, Tagging, _entities, _joined, _many
from .tokenizer import Tokenizer, _texts, _whole

# The keys of generation_config.json that generate() takes, by those of sampling alone and the others.
_OF_SAMPLING = ("temperature", "top_k", "top_p", "min_p")
_OF_GENERATION = (
    "max_new_tokens", "min_new_tokens", "max_length", "min_length", "num_beams", "do_sample", "num_return_sequences",
    "length_penalty", "early_stopping", "repetition_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id", "eos_token_id",
    "pad_token_id", "bos_token_id", "decoder_start_token_id", *_OF_SAMPLING,
)  # fmt: skip
# What stands beside the weights and goes with them when a model is saved.
_BESIDE = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json",
    "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "source.spm", "target.spm",
    "generation_config.json", "preprocessor_config.json", "chat_template.jinja",
)  # fmt: skip


class Pretrained(Model):
    """A Hugging Face folder's model. Made by multihead.load; threads may share it."""

    def __init__(self, folder: str | os.PathLike[str], precision: Literal["f32", "bf16"] = "f32") -> None:
        if precision not in ("f32", "bf16"):
            raise ValueError(f"load: precision is {precision!r}; expected 'f32' or 'bf16'")
        self.folder = os.fspath(folder)
        self.precision = precision
        self._core = _core.Pretrained(self.folder, precision == "bf16")
        self._said = self._core.described()
        self._tokenizer: Tokenizer | None = None

    @property
    def config(self) -> dict[str, Any]:
        """config.json."""
        said: dict[str, Any] = json.loads(self._said["config"])
        return said

    @property
    def tokenizer(self) -> Tokenizer:
        """The folder's tokenizer. Raises OSError where it holds none."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer.load(self.folder)
        return self._tokenizer

    @property
    def labels(self) -> list[str]:
        """Of a classifier or tagger, by number."""
        named: list[str] = self._said["labels"]
        return named + [f"LABEL_{n}" for n in range(len(named), self._said["outputs"])] if self._does("classify", "tag") else []

    @property
    def unused(self) -> list[str]:
        """Tensors of the folder that the model does not read."""
        return list(self._said["unused"])

    def _does(self, *verbs: str) -> bool:
        return self._said["verb"] in verbs

    def __call__(self, texts: Any, **options: Any) -> Any:
        """What the folder is for, of a text (to one result) or many (to a list).

        A text classifier gives Classification, a tagger Tagging, a model that writes text what generate() gives. A pair of
        texts is a tuple, or a str with a tab. Others are run by forward().
        """
        if self._does("generate", "translate", "summarise"):
            return self.generate(texts, **options)
        if options:
            raise TypeError(f"model: there is no option {next(iter(options))}; a {self._said['description']} has none")
        if self._does("tag"):
            given, one = _many(texts)
            found = self._core.tag(_texts("model", "texts", given))
            tags = [Tagging(words, tags, _entities(text, spans), cut) for text, (words, tags, spans, cut) in zip(given, found)]
            return tags[0] if one else tags
        if self._does("classify") and not self._said["choice"] and "image" not in self._said["description"]:
            return self._classified(texts)
        raise NotImplementedError(
            f"model: a {self._said['description']} has no call with text in Python; expected a classifier, a tagger or a model "
            "that writes text; forward() runs its token ids or pixels"
        )

    def _classified(self, texts: Any) -> Any:
        given, one = _many(texts)
        labels = self.labels
        out = [
            Classification(label, score, dict(zip(labels, scores)), cut)
            for label, score, scores, cut in self._core.classify(_texts("model", "texts", map(_joined, given)))  # type: ignore[arg-type]
        ]
        return out[0] if one else out

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
        """One pass of the model, without the GIL: NumPy arrays, and tuples of them by layer, named as Hugging Face names them.

        Ids are (batch, tokens): NumPy, torch, or lists, also of different lengths. attention_mask: 0 where there is padding,
        before or behind a sequence; each is read as if it stood alone. Rows of padding in the result are unspecified.
        """
        out: dict[str, Any] = {}
        inputs: dict[str, Any] = {"hidden_states": bool(output_hidden_states), "attentions": bool(output_attentions)}
        inputs |= {"pixel_values": pixel_values, "token_type_ids": None, "input_ids": None, "lengths": []}
        inputs |= {"decoder_input_ids": None, "decoder_lengths": []}
        tokens = written = None
        shape: tuple[int, ...] = ()
        if input_ids is not None:
            axes = 3 if self._said["choice"] else 2
            inputs["input_ids"], tokens, shape = sequences("forward", ("input_ids", "attention_mask"), input_ids, attention_mask, axes)
            inputs["lengths"] = tokens.lengths
            if token_type_ids is not None:
                inputs["token_type_ids"] = self._types(token_type_ids, shape, tokens)
        elif attention_mask is not None or token_type_ids is not None:
            raise ValueError("forward: attention_mask or token_type_ids without input_ids; expected both")
        if decoder_input_ids is not None:
            names = ("decoder_input_ids", "decoder_attention_mask")
            inputs["decoder_input_ids"], written, _ = sequences("forward", names, decoder_input_ids, decoder_attention_mask)
            inputs["decoder_lengths"] = written.lengths
        tensors, layers, lengths, _ = self._core.forward(inputs)
        layouts = _Layouts(self._said, tokens or Layout.full(len(lengths), max(lengths, default=0)), written, shape)
        if "image_embeds" in tensors and "vision_last_hidden_state" in tensors:
            images = len(tensors["image_embeds"])
            layouts.images = Layout.full(images, len(tensors["vision_last_hidden_state"]) // max(images, 1))
        for name, array in tensors.items():
            out[name] = layouts.padded(name, array)
        for name, arrays in layers.items():
            out[name] = tuple(layouts.padded(name, array) for array in arrays)
        return out

    def _types(self, types: object, shape: tuple[int, ...], tokens: Layout) -> Any:
        flat, layout, given = sequences("forward", ("token_type_ids", "attention_mask"), types, None, len(shape))
        if given != shape or (not layout.is_full and layout.lengths != tokens.lengths):
            raise ValueError(f"forward: token_type_ids has the shape {given}, input_ids {shape}; expected the same")
        return tokens.flat(flat.reshape(-1, shape[-1])) if layout.is_full else flat

    def generate(self, inputs: Any, attention_mask: Any = None, *, seed: int | None = None, **options: Any) -> Any:
        """What the model writes behind a prompt, without the GIL: text for text, and for ids (batch, tokens) a list of ids each.

        Ids of the prompt, of the decoder's beginning and of the end are not among those given back. A str gives one result,
        several a list; with num_return_sequences above 1 each is a list, best first. The folder's generation_config.json says
        how it writes; options go over it, by its keys: max_new_tokens, num_beams, do_sample, temperature, top_k, top_p,
        repetition_penalty, no_repeat_ngram_size, … seed: of what do_sample=True draws (1).
        """
        how = self._how(options, seed)
        texts, one = _texts_or_none(inputs)
        if texts is None:
            flat, layout, _ = sequences("generate", ("input_ids", "attention_mask"), inputs, attention_mask)
            ends = [sum(layout.lengths[:n]) for n in range(1, len(layout.lengths) + 1)]
            prompts = [flat[end - length : end].tolist() for end, length in zip(ends, layout.lengths)]
        else:
            if attention_mask is not None:
                raise ValueError("generate: attention_mask is given with text; expected it with ids alone")
            prompts = [each.ids for each in self.tokenizer.encode_batch(texts)]
        for n, prompt in enumerate(prompts):
            for each in prompt:
                _whole("generate", f"an id of prompt {n}", each, 32)
        written = self._core.write(prompts, json.dumps(how), 1 if seed is None else _whole("generate", "seed", seed))
        out = [[ids if texts is None else self._text(prompt, ids) for ids, _, _ in each] for prompt, each in zip(prompts, written)]
        flattened = out if how.get("num_return_sequences", 1) not in (None, 1) else [each[0] for each in out]
        return flattened[0] if one else flattened

    def _text(self, prompt: list[int], ids: list[int]) -> str:
        return self._core.text(self.tokenizer._inner, prompt, ids).decode("utf-8", "replace")

    def _how(self, options: dict[str, Any], seed: int | None) -> dict[str, Any]:
        for name in options:
            if name not in _OF_GENERATION:
                near = difflib.get_close_matches(name, [*_OF_GENERATION, "seed", "attention_mask"], 1)
                hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(_OF_GENERATION)}"
                raise TypeError(f"generate: there is no option {name}; {hint}")
        path = os.path.join(self.folder, "generation_config.json")
        how = self.config
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                how = json.load(file)
            if not isinstance(how, dict):
                raise OSError(f"{path}: is not a JSON object")
        try:
            options = json.loads(json.dumps(options, default=_plain))
            _core.unread_generation_keys(json.dumps(options))
        except OSError as error:  # what it says of a file is of an argument here
            raise ValueError(str(error)) from None
        if options.get("max_length") is not None:
            how.pop("max_new_tokens", None)
        how |= options
        alone = [name for name in _OF_SAMPLING if name in options] + (["seed"] if seed is not None else [])
        if alone and not how.get("do_sample"):
            raise ValueError(f"generate: {alone[0]} goes with do_sample=True")
        if seed is not None and _whole("generate", "seed", seed) < 0:
            raise ValueError(f"generate: seed is {seed}; expected 0 or more")
        for sentence in _core.unread_generation_keys(json.dumps(how)):
            warnings.warn(sentence, stacklevel=3)
        return how

    def _save(self, folder: str) -> None:
        self._core.save(folder)
        self._copy(folder, *(name for name in _BESIDE if os.path.isfile(os.path.join(self.folder, name))))

    def _refuse(self, what: str) -> NoReturn:
        raise NotImplementedError(
            f"{what}: {self.folder} is a {self._said['description']}; expected a translation model that `multihead train` left; "
            "forward() and generate() run this one"
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
        """Refused: of our own translation models; forward(output_attentions=True) gives this one's."""
        self._refuse("attention")

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (Pretrained, (self.folder, self.precision))

    def __repr__(self) -> str:
        return f"multihead.Pretrained({self.folder!r}: {self._said['description']}, {self.precision})"


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy and torch as JSON has them."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"generate: an option is a {type(value).__name__}; expected a number, a bool, or lists of numbers")
    return value.tolist()


def _texts_or_none(inputs: Any) -> tuple[list[str] | None, bool]:
    if isinstance(inputs, str):
        return _texts("generate", "texts", [inputs]), True
    if isinstance(inputs, (list, tuple)) and any(isinstance(each, str) for each in inputs):
        return _texts("generate", "texts", inputs), False
    if isinstance(inputs, bytes):
        raise TypeError("generate: inputs is a bytes; expected text or ids")
    if inputs is not None and not hasattr(inputs, "__len__"):
        return _texts("generate", "texts", inputs), False
    return None, False


class _Layouts:
    """Which output has rows of which tokens."""

    def __init__(self, said: dict[str, Any], read: Layout, written: Layout | None, shape: tuple[int, ...]) -> None:
        self.said, self.read, self.last, self.shape = said, read, written or read, shape
        self.images = Layout.full(0, 0)  # of a model with two towers

    def padded(self, name: str, array: Any) -> Any:
        read = self.read if name.startswith(("encoder_", "text_")) else self.last
        if name.startswith("vision_"):
            read = self.images
        if name == "cross_attentions":
            return padded_weights(array, self.last, self.read)
        if name.endswith("attentions"):
            return padded_weights(array, read, read)
        if name.endswith(("last_hidden_state", "hidden_states")):
            return read.padded(array)
        if name in ("logits", "start_logits", "end_logits") and self.said["rows"]:
            rows = self.last.padded(array)
            return rows[..., 0] if self.said["class"] == "ElectraForPreTraining" else rows
        return array.reshape(self.shape[:2]) if name == "logits" and self.said["choice"] else array
