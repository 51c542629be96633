"""Masks: what each keeps, and how they join."""
import numpy as np
import pytest
import reference

import multihead

B, H, TQ, TK = 2, 2, 12, 20
KEYS = np.arange(TK)
POSITION = reference.positions(TQ, TK)[:, None]
DENSE = np.random.default_rng(1).random((B, H, TQ, TK)) < 0.6
IDS = np.sort(np.random.default_rng(2).integers(0, 4, (B, TK)))
BEFORE = KEYS <= POSITION


def same_document(query_ids):
    return (query_ids[:, :, None] == IDS[:, None, :])[:, None]


CASES = {
    "causal": (multihead.causal(), BEFORE),
    "causal_from_the_top_left": (multihead.causal(0), KEYS <= np.arange(TQ)[:, None]),
    "causal_by_sequence": (multihead.causal([3, 5]), KEYS <= (np.arange(TQ)[:, None] + np.array([3, 5]).reshape(2, 1, 1, 1))),
    "window": (multihead.window(3, 2), (KEYS >= POSITION - 3) & (KEYS <= POSITION + 2)),
    "window_open_to_the_left": (multihead.window(-1, 0), BEFORE),
    "window_at_positions": (multihead.positions(0) & multihead.window(1, 1), np.abs(KEYS - np.arange(TQ)[:, None]) <= 1),
    "prefix": (multihead.prefix(15), BEFORE | (KEYS < 15)),
    "prefix_by_sequence": (multihead.prefix(np.array([15, 2])), BEFORE | (KEYS < np.array([15, 2]).reshape(2, 1, 1, 1))),
    "keep": (multihead.keep(DENSE), DENSE),
    "keep_of_bytes": (multihead.keep(DENSE.view(np.uint8)), DENSE),
    "keep_one_row_for_all": (multihead.keep(DENSE[0, 0, :1]), DENSE[0, 0, :1]),
    "drop": (multihead.drop(DENSE[:, :1]), ~DENSE[:, :1]),
    "documents": (multihead.documents(IDS), same_document(IDS[:, TK - TQ:])),
    "documents_of_both": (multihead.documents(IDS[:, :TQ], IDS), same_document(IDS[:, :TQ])),
    "joined": (multihead.causal() & multihead.window(5, -1) & multihead.keep(DENSE), BEFORE & (KEYS >= POSITION - 5) & DENSE),
}


@pytest.mark.parametrize("name", CASES)
def test_keeps(name, randn):
    q, k, v = randn(B, H, TQ, 16), randn(B, H, TK, 16), randn(B, H, TK, 16)
    mask, keep = CASES[name]
    reference.close(multihead.attention(q, k, v, mask=mask), reference.attention(q, k, v, keep=keep)[0])


def test_lengths_move_the_positions(randn):
    """The last query sits at the last key of its own sequence."""
    q, k, v = randn(B, H, TQ, 16), randn(B, H, TK, 16), randn(B, H, TK, 16)
    for given in ([13, 20], np.array([13, 20], np.int32), np.array([13, 20])):
        o = multihead.attention(q, k, v, mask=multihead.lengths(given) & multihead.causal())
        for b, n in enumerate([13, 20]):
            keep = KEYS[:n] <= reference.positions(TQ, n)[:, None]
            alone = reference.attention(q[b:b + 1], k[b:b + 1, :, :n], v[b:b + 1, :, :n], keep=keep)[0]
            reference.close(o[b:b + 1], alone)


def test_what_is_dropped_never_reaches_the_output(randn):
    q, k, v = randn(1, 2, 8, 16), randn(1, 2, 8, 16), randn(1, 2, 8, 16)
    clean = multihead.attention(q, k[:, :, :5], v[:, :, :5])
    k[:, :, 5:], v[:, :, 5:] = np.nan, np.inf
    reference.close(multihead.attention(q, k, v, mask=multihead.lengths([5])), clean)
    reference.close(multihead.attention(q, k, v, mask=multihead.keep(np.arange(8) < 5)), clean)


def test_a_mask_keeps_its_array_alive(randn):
    q, k, v = randn(3, 1, 1, 64, 16)
    mask = multihead.keep(np.tri(64, dtype=bool)) & multihead.causal()
    noise = [np.ones((64, 64), bool) for _ in range(50)]
    assert len(noise) == 50
    assert np.array_equal(multihead.attention(q, k, v, mask=mask), multihead.attention(q, k, v, mask=multihead.causal()))


def test_text():
    mask = multihead.causal() & multihead.window(4, -1) & multihead.drop(DENSE)
    assert repr(mask) == "multihead.causal() & window(4, -1) & drop([2, 2, 12, 20])"
