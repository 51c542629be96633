"""Attention in double precision, written from docs/semantics.md: what the tests compare with."""
import numpy as np


def positions(Tq, Tk, offset=None):
    """(Tq,) for one sequence: the last query sits at the last key unless an offset is given."""
    return np.arange(Tq) + (Tk - Tq if offset is None else offset)


def scores(q, k, scale=None, similarity="dot", tau=1.0):
    q, k = q.astype(np.float64), k.astype(np.float64)
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    dot = q @ k.swapaxes(-1, -2)
    if similarity == "dot":
        return scale * dot
    if similarity == "euclidean":
        return scale * (2 * dot - (q * q).sum(-1)[..., :, None] - (k * k).sum(-1)[..., None, :])
    lengths = np.linalg.norm(q, axis=-1)[..., :, None] * np.linalg.norm(k, axis=-1)[..., None, :]
    return np.asarray(tau).reshape(-1, 1, 1) * dot / lengths


def attention(q, k, v, *, keep=True, bias=0.0, softcap=0.0, sink=None, **similarity):
    """(o, lse, p). keep and bias broadcast to (B, H, Tq, Tk)."""
    s = scores(q, k, **similarity)
    if softcap > 0:
        s = softcap * np.tanh(s / softcap)
    s = np.where(np.broadcast_to(keep, s.shape), s + bias, -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        top = np.maximum(top, sink.reshape(-1, 1, 1))
    top = np.where(np.isfinite(top), top, 0)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.reshape(-1, 1, 1) - top)
    p = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + top)[..., 0]
    return p @ np.repeat(v.astype(np.float64), q.shape[1] // v.shape[1], axis=1), lse, p


def close(got, want, dtype=np.float32):
    """Within the error of the plain algorithm in that type: a few roundings of the largest value."""
    unit = {"float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}[np.dtype(dtype).name]
    difference = np.abs(np.asarray(got, np.float64) - want).max(initial=0)
    limit = 8 * unit * max(1.0, np.abs(want).max(initial=0))
    assert difference <= limit, f"differs by {difference:.2e}, more than {limit:.2e}"
