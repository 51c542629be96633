"""multihead.train: training runs from Python, with events, a progress bar and clean stops."""

from __future__ import annotations

import functools
import json
import logging
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO, Union

from . import _core
from .folders import load
from .model import Model


@dataclass(frozen=True)
class TrainStart:
    """Known before the first step; first_step: steps that a resumed run has behind it.

    examples: what the data consist of, such as "pairs"; train and valid: how many there are. tokens: those of the training
    data whose loss counts; source_tokens: those that are only read.
    """

    parameters: int
    vocabulary: int
    train: int
    valid: int
    source_tokens: int
    tokens: int
    first_step: int
    steps: int
    examples: str


@dataclass(frozen=True)
class TrainStep:
    """A step that has just ended, counted from 1, as are epochs; the loss is label-smoothed, per target token."""

    step: int
    steps: int
    epoch: int
    tokens: int
    loss: float
    learning_rate: float
    grad_norm: float
    tokens_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class TrainValidation:
    """A validation: the loss per token without smoothing; all metrics of the task, such as metrics["bleu"]; lines the model
    wrote, where the task shows any."""

    step: int
    loss: float
    metrics: dict[str, float]
    samples: list[str]
    best: bool
    mean: bool


@dataclass(frozen=True)
class TrainCheckpoint:
    """A checkpoint was saved."""

    path: str


@dataclass(frozen=True)
class TrainMessage:
    """A sentence for the user: skipped lines, steps without finite gradients."""

    text: str


@dataclass(frozen=True)
class TrainWait:
    """How far the preparations are: "learning the tokenizer"."""

    done: int
    total: int
    what: str


TrainEvent = Union[TrainStart, TrainStep, TrainValidation, TrainCheckpoint, TrainMessage, TrainWait]
_KINDS: dict[str, Callable[..., TrainEvent]] = {
    "start": TrainStart,
    "step": TrainStep,
    "validation": TrainValidation,
    "checkpoint": TrainCheckpoint,
    "message": TrainMessage,
    "wait": TrainWait,
}


@dataclass(frozen=True)
class TrainResult:
    """A run that ended: the folder and the model it left, how many steps it made, whether it was stopped before its end.

    best_validation: the lowest validation loss; None without validation. mean: the model is the running mean of the
    weights. translates: it is a translator.
    """

    folder: str
    steps: int
    stopped: bool
    best_validation: float | None
    mean: bool
    translates: bool

    @functools.cached_property
    def model(self) -> Model:
        """What the run left, loaded."""
        return load(self.folder)


def _clock(seconds: float) -> str:
    if not math.isfinite(seconds) or seconds < 0:
        return "?"
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


class _Bar:
    """A bar that redraws itself in place, ten times a second at most."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.last = out, -math.inf

    def draw(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if now - self.last < 0.1 and done < total:
            return
        self.last = now
        behind = f" {done}/{total}  {text}"
        columns = shutil.get_terminal_size().columns - 1
        width = max(8, min(30, columns - len(behind) - 2))
        full = width * done // max(1, total)
        self.put("\r\033[K" + f"[{'#' * full}{'.' * (width - full)}]{behind}"[:columns])

    def say(self, line: str) -> None:
        self.put(f"\r\033[K{line}\n")
        self.last = -math.inf

    def end(self) -> None:
        self.put("\r\033[K")

    def put(self, text: str) -> None:
        """Nobody who reads it is no reason to stop."""
        try:
            self.out.write(text)
            self.out.flush()
        except (OSError, ValueError):
            pass

    def show(self, event: TrainEvent) -> None:
        if isinstance(event, TrainStep):
            left = f"loss {event.loss:.3f}  {event.tokens_per_second:,.0f} tokens/s  {_clock(event.seconds_left)} left"
            self.draw(event.step, event.steps, left)
        elif isinstance(event, TrainWait):
            self.draw(event.done, event.total, event.what)
        elif isinstance(event, TrainValidation):
            others = "".join(f", {name} {value:.2f}" for name, value in event.metrics.items() if name != "loss")
            best = ", the best so far" if event.best else ""
            self.say(f"step {event.step:,}: validation loss {event.loss:.4f}{others}{best}")
        elif isinstance(event, TrainCheckpoint):
            self.say(f"saved {event.path}")
        elif isinstance(event, TrainMessage):
            self.say(event.text)


def _toml_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value)).replace("\x7f", "\\u007f")
    raise TypeError(f"train: {name} is a {type(value).__name__}; expected a bool, a number or a str")


def _toml(config: Mapping[str, Any]) -> str:
    lines = []
    for section, keys in config.items():
        if not isinstance(keys, Mapping):
            raise TypeError(f"train: {section} is a {type(keys).__name__}; expected a dict of the keys of section [{section}]")
        lines.append(f"[{json.dumps(section)}]")
        lines += [f"{json.dumps(name)} = {_toml_value(f'{section}.{name}', value)}" for name, value in keys.items()]
    return "\n".join(lines) + "\n"


def _override(name: str, value: object) -> str:
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return f"{name}={text}"


def train(
    config: str | os.PathLike[str] | Mapping[str, Any],
    *,
    set: Mapping[str, object] | None = None,
    resume: bool = False,
    callback: Callable[[TrainEvent], object] | None = None,
    progress: bool | None = None,
) -> TrainResult:
    """Trains a translator (or a language model) and returns it with what is known of the run: what `multihead train` does.

    config: the path of a TOML file, or a dict of the same sections and keys (docs/configuration.md); variables of the
    environment count for a file alone. set: keys over it, {"train.steps": 100}. resume: go on from the newest checkpoint
    of train.output, with the bits of a run that was never stopped; begin where there is none.

    callback(event) hears of TrainStart, TrainStep, TrainValidation, TrainCheckpoint, TrainMessage and TrainWait, on the
    thread that trains, with the GIL, which is released otherwise. Where it returns False the run saves and stops after
    the step at hand, and the result says stopped. Where it raises, or Control-C is pressed, the run saves in the same way
    and the exception goes on; before the first step there is nothing to save.

    progress: a bar on stderr; by default where that is a terminal. Without a bar and a callback, messages go to the
    logger "multihead". Raises ValueError and OSError with the program's sentences.

    >>> import multihead, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "pairs.tsv").write_text("".join(f"{n} cats\\t{n} Katzen\\n" for n in range(200)))
    >>> done = multihead.train({
    ...     "model": {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1},
    ...     "tokenizer": {"vocabulary": 300},
    ...     "data": {"train": folder / "pairs.tsv", "hold_out": 20},
    ...     "train": {"output": folder / "model", "steps": 3},
    ... })
    >>> done.steps, done.stopped, done.model.config["width"]
    (3, False, 16)
    """
    path, text = None, ""
    if isinstance(config, Mapping):
        text = _toml(config)
    else:
        path = os.fspath(config)
    shown = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress
    bar = _Bar(sys.stderr) if shown else None

    def heard(kind: str, fields: dict[str, Any]) -> object:
        event = _KINDS[kind](**fields)
        if bar:
            bar.show(event)
        elif isinstance(event, TrainMessage) and callback is None:
            logging.getLogger("multihead").warning(event.text)
        return callback(event) if callback else None

    overrides = [_override(name, value) for name, value in (set or {}).items()]
    try:
        folder, steps, stopped, best, mean, translates = _core.train(path, text, overrides, bool(resume), heard)
    except ValueError as error:
        # A dict has no lines.
        plain = re.sub(r"^config:\d+: ", "config: ", str(error)) if path is None else str(error)
        if plain == str(error) or type(error) is not ValueError:
            raise
        raise ValueError(plain) from None
    finally:
        if bar:
            bar.end()
    return TrainResult(folder, steps, stopped, best, mean, translates)
