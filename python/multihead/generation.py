"""How a model writes: the keys of generation_config.json, over those of its folder."""

from __future__ import annotations

import difflib
import json
import warnings
from typing import Any

from . import _core
from .tokenizer import _whole

# The keys that generate() takes, by those of sampling alone and the others.
_OF_SAMPLING = ("temperature", "top_k", "top_p", "min_p")
_OF_GENERATION = (
    "max_new_tokens", "min_new_tokens", "max_length", "min_length", "num_beams", "do_sample", "num_return_sequences",
    "length_penalty", "early_stopping", "repetition_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id", "eos_token_id",
    "pad_token_id", "bos_token_id", "decoder_start_token_id", *_OF_SAMPLING,
)  # fmt: skip


def _how(how: dict[str, Any], options: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """`options` over `how`, what the folder says. Raises TypeError, ValueError for what does not fit."""
    for name in options:
        if name not in _OF_GENERATION:
            near = difflib.get_close_matches(name, [*_OF_GENERATION, "seed", "attention_mask"], 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(_OF_GENERATION)}"
            raise TypeError(f"generate: there is no option {name}; {hint}")
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
        warnings.warn(sentence, stacklevel=4)
    return how


def _first_or_all(how: dict[str, Any], written: list[list[Any]]) -> list[Any]:
    """Of each prompt the best, or with num_return_sequences above 1 all."""
    return written if how.get("num_return_sequences", 1) not in (None, 1) else [each[0] for each in written]


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy and torch as JSON has them."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"generate: an option is a {type(value).__name__}; expected a number, a bool, or lists of numbers")
    return value.tolist()
