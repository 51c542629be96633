"""multihead.Pretrained: Hugging Face's folders run as they are."""

from __future__ import annotations

import json
import os
from typing import Any, Literal

from . import _core
from .generation import _first_or_all, _how
from .padding import Layout, padded_weights, sequences
from .recording import Recording, _record
from .text_model import TextModel
from .tokenizer import _texts, _whole

# What stands beside the weights and goes with them when a model is saved.
_BESIDE = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json",
    "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "source.spm", "target.spm",
    "generation_config.json", "preprocessor_config.json", "chat_template.jinja", "modules.json", "config_sentence_transformers.json",
    "sentence_bert_config.json",
)  # fmt: skip


class Pretrained(TextModel):
    """A Hugging Face folder's model. Made by multihead.load; threads may share it."""

    def __init__(self, folder: str | os.PathLike[str], precision: Literal["f32", "bf16"] = "f32") -> None:
        if precision not in ("f32", "bf16"):
            raise ValueError(f"load: precision is {precision!r}; expected 'f32' or 'bf16'")
        self.folder = os.fspath(folder)
        self.precision = precision
        self._core = _core.Pretrained(self.folder, precision == "bf16")
        self._said = self._core.described()
        self._prepare(self._said["verb"])

    @property
    def config(self) -> dict[str, Any]:
        """config.json."""
        said: dict[str, Any] = json.loads(self._said["config"])
        return said

    @property
    def labels(self) -> list[str]:
        """Of a classifier or tagger, by number."""
        named: list[str] = self._said["labels"]
        return named + [f"LABEL_{n}" for n in range(len(named), self._said["outputs"])] if self._verb in ("classify", "tag") else []

    @property
    def unused(self) -> list[str]:
        """Tensors of the folder that the model does not read."""
        return list(self._said["unused"])

    def __call__(self, texts: Any, **options: Any) -> Any:
        if self._verb == "classify" and (self._said["choice"] or "image" in self._said["description"]):
            raise NotImplementedError(f"model: a {self._said_as()} has no call with text in Python; forward() runs its token ids or pixels")
        return super().__call__(texts, **options)

    __call__.__doc__ = TextModel.__call__.__doc__

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
        how = _how(self._defaults(), options, seed)
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
        flattened = _first_or_all(how, out)
        return flattened[0] if one else flattened

    def _text(self, prompt: list[int], ids: list[int]) -> str:
        return self._core.text(self.tokenizer._inner, prompt, ids).decode("utf-8", "replace")

    def record(self, text: Any, written: str | None = None) -> Recording:
        def recorded(first: str, pair: str | None) -> _core.Recording:
            return self._core.record(self.tokenizer._inner, first, pair, self._written(first, written))

        core, title = _record(recorded, text)
        return Recording(core, title if written is None else f"{title} → {written}", self.folder)

    record.__doc__ = TextModel.record.__doc__

    def _written(self, text: str, written: str | None) -> list[int] | None:
        """Ids that the decoder behind an encoder reads: of what is given, or the model's own."""
        if not self._said["cross_attention"]:
            if written is not None:
                raise ValueError(f"record: written is given; a {self._said_as()} has no decoder behind an encoder")
            return None
        if written is not None:
            return self.tokenizer.encode(written, add_special_tokens=False).ids
        ids: list[int] = self.generate([self.tokenizer.encode(text).ids], num_return_sequences=1)[0]
        return ids

    def _defaults(self) -> dict[str, Any]:
        path = os.path.join(self.folder, "generation_config.json")
        if not os.path.exists(path):
            return self.config
        with open(path, encoding="utf-8") as file:
            how = json.load(file)
        if not isinstance(how, dict):
            raise OSError(f"{path}: is not a JSON object")
        return how

    def _save(self, folder: str) -> None:
        self._core.save(folder)
        self._copy(folder, *(name for name in (*_BESIDE, *_module_files(self.folder)) if os.path.isfile(os.path.join(self.folder, name))))

    def _said_as(self) -> str:
        return str(self._said["description"])

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (Pretrained, (self.folder, self.precision))


def _module_files(folder: str) -> list[str]:
    """The files in the folders that modules.json of sentence-transformers names: "1_Pooling/config.json"."""
    path = os.path.join(folder, "modules.json")
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8") as file:
        modules = json.load(file)
    if not isinstance(modules, list) or not all(isinstance(each, dict) and isinstance(each.get("path"), str) for each in modules):
        raise OSError(f"{path}: is not a list of modules with a path each")
    out = []
    for module in (each["path"] for each in modules if each["path"]):
        inside = os.path.normpath(module)
        if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:
            raise OSError(f"{path}: names {module}, which leads out of the folder")
        if os.path.isdir(os.path.join(folder, inside)):
            out += [os.path.join(inside, name) for name in sorted(os.listdir(os.path.join(folder, inside)))]
    return out


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
