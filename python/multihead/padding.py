"""Batches padded as Hugging Face pads them, to rows without padding and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def _row(op: str, name: str, values: object) -> Integers:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{op}: {name} holds {array.dtype}; expected integers")
    if array.dtype == np.uint64 and int(array.max()) >= 2**63:
        raise ValueError(f"{op}: {name} holds {array.max()}; expected integers of 32 bits")
    return array.astype(np.int64, copy=False)


def _ragged(values: object) -> bool:
    return isinstance(values, (list, tuple)) and len({len(row) for row in values if hasattr(row, "__len__")}) > 1


@dataclass(frozen=True)
class Layout:
    """Where each sequence of a padded batch stands in its row: `lengths[b]` tokens from `begins[b]`, of `width`."""

    lengths: list[int]
    begins: list[int]
    width: int

    @classmethod
    def full(cls, batch: int, width: int) -> Layout:
        return cls([width] * batch, [0] * batch, width)

    @property
    def is_full(self) -> bool:
        return all(length == self.width for length in self.lengths)

    def flat(self, padded: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The rows of (B, T, …) that are no padding, one behind the other."""
        rows = [row[begin : begin + length] for row, begin, length in zip(padded, self.begins, self.lengths)]
        return np.concatenate(rows) if rows else padded.reshape(-1)

    def padded(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(rows, …) as (B, T, …)."""
        if self.is_full:
            return rows.reshape(len(self.lengths), self.width, *rows.shape[1:])
        out, first = np.zeros((len(self.lengths), self.width, *rows.shape[1:]), rows.dtype), 0
        for b, (begin, length) in enumerate(zip(self.begins, self.lengths)):
            out[b, begin : begin + length] = rows[first : first + length]
            first += length
        return out


def padded_weights(weights: npt.NDArray[Any], queries: Layout, keys: Layout) -> npt.NDArray[Any]:
    """Attention weights (B, H, longest, longest), each sequence from 0, as (B, H, Tq, Tk)."""
    if queries.is_full and keys.is_full:
        return weights
    out = np.zeros((*weights.shape[:2], queries.width, keys.width), weights.dtype)
    for b, (q, k, nq, nk) in enumerate(zip(queries.begins, keys.begins, queries.lengths, keys.lengths)):
        out[b, :, q : q + nq, k : k + nk] = weights[b, :, :nq, :nk]
    return out


def _masked(op: str, names: tuple[str, str], shape: tuple[int, ...], mask: object) -> Layout:
    ids, name = names
    given = np.asarray(mask)
    if given.shape != shape:
        raise ValueError(f"{op}: {name} has the shape {given.shape}, {ids} {shape}; expected the same")
    kept = (given != 0).reshape(-1, shape[-1])
    starts = np.diff(kept.astype(np.int8), axis=1, prepend=0) == 1
    if (starts.sum(1) > 1).any():
        raise ValueError(f"{op}: row {int((starts.sum(1) > 1).argmax())} of {name} has a gap; expected padding before or behind the tokens")
    begins = kept.argmax(1) if shape[-1] else np.zeros(len(kept), np.int64)
    return Layout(kept.sum(1).tolist(), begins.tolist(), shape[-1])


def sequences(op: str, names: tuple[str, str], ids: object, mask: object, axes: int = 2) -> tuple[Integers, Layout, tuple[int, ...]]:
    """Ids (B, T), or lists of different lengths, without their padding; where each stood; and the shape given.

    names: of the ids and of their mask. axes: 3 where a model reads several texts at once, (B, choices, T).
    """
    if _ragged(ids) and mask is None and axes == 2:
        rows = [_row(op, names[0], row) for row in ids]  # type: ignore[attr-defined]
        lengths = [len(row) for row in rows]
        return np.concatenate(rows), Layout(lengths, [0] * len(rows), max(lengths)), (len(rows), max(lengths))
    if _ragged(ids):
        raise ValueError(f"{op}: the rows of {names[0]} have different lengths; expected one length with {names[1]}")
    array = _row(op, names[0], ids)
    if array.ndim != axes:
        expected = "(batch, tokens)" if axes == 2 else "(batch, choices, tokens)"
        raise ValueError(f"{op}: {names[0]} has the shape {array.shape}; expected {expected}")
    flat = array.reshape(-1, array.shape[-1]) if array.size else array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1])
    layout = Layout.full(*flat.shape) if mask is None else _masked(op, names, array.shape, mask)
    return layout.flat(flat), layout, array.shape
